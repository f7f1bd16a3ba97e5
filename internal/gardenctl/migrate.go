package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func (c *cli) migrateCommand() *cobra.Command {
	var seed string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "migrate [shoot] [NAME] --to=SEED", Short: "Move the control plane of a shoot to another seed", Args: cobra.MaximumNArgs(2),
		Long: c.examples(`migrate shoot my-cluster --to=seed-b
  PROGRAM migrate shoot my-cluster --to=seed-b --wait`) + `
Nodes and their pods go on running. The kube-apiserver does not answer from when the former seed has taken the last backup until the other one has restored
it, and then has another address. This is for operators: it needs permission to update the subresource binding of shoots.`,
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			if seed == "" {
				return errors.New("no seed is given; add --to=SEED")
			}
			p, generation, err := c.bind(cmd.Context(), args, seed)
			if err != nil || !wait {
				return err
			}
			return c.await(cmd.Context(), p, goal{"on seed " + seed, func(shoot *corev1beta1.Shoot) error { return movedTo(shoot, seed, generation) }}, timeout)
		},
	}
	cmd.Flags().StringVar(&seed, "to", "", "the seed that the control plane moves to")
	_ = cmd.RegisterFlagCompletionFunc("to", c.completion(seedNames)) // it fails for unknown flags only
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait")
	return cmd
}

// bind binds a shoot to a seed, and returns its new generation.
func (c *cli) bind(ctx context.Context, args []string, seed string) (*place, int64, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	p, shoot, err := c.readToChange(ctx, args)
	if err != nil {
		return nil, 0, err
	}
	if ptr.Deref(shoot.Spec.SeedName, "") != seed {
		shoot.Spec.SeedName = &seed
		if err := p.client.SubResource("binding").Update(ctx, shoot); err != nil {
			return nil, 0, c.explainShoot(err, p)
		}
		if shoot, err = c.read(ctx, p); err != nil {
			return nil, 0, err
		}
	}
	_, err = fmt.Fprintf(c.Out, "shoot %s: move to seed %s requested\n", p.name, seed)
	return p, shoot.Generation, err
}

// movedTo returns why the control plane of a shoot is not on a seed yet.
func movedTo(shoot *corev1beta1.Shoot, seed string, generation int64) error {
	if shoot != nil && ptr.Deref(shoot.Spec.SeedName, "") != seed {
		return &hopeless{fmt.Errorf("it is bound to seed %q again", ptr.Deref(shoot.Spec.SeedName, ""))}
	}
	if err := reconciled(shoot, generation); err != nil {
		return err
	}
	if on := ptr.Deref(shoot.Status.SeedName, ""); on != seed {
		return fmt.Errorf("it is on seed %q", on)
	}
	return nil
}
