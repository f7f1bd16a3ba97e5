package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// slumber is the command hibernate or wake.
type slumber struct {
	name, short, done, state, example string
	hibernated                        bool
}

var (
	hibernate = slumber{
		"hibernate", "Hibernate a shoot: remove nodes and control plane, and keep all its data", "hibernation requested", "hibernated",
		`hibernate shoot my-cluster
  PROGRAM hibernate shoot my-cluster --wait`, true,
	}
	wake = slumber{
		"wake", "Wake up a hibernated shoot", "wake-up requested", "awake",
		`wake shoot my-cluster
  PROGRAM wake shoot my-cluster --wait`, false,
	}
)

func (c *cli) slumberCommand(s slumber) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: s.name + " [shoot] [NAME]", Short: s.short, Args: cobra.MaximumNArgs(2), Long: c.examples(s.example) + `
Schedules of the shoot stay in effect, and change this at their next time.`,
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, generation, err := c.slumber(cmd.Context(), s, args)
			if err != nil || !wait {
				return err
			}
			return c.await(cmd.Context(), p, goal{s.state, func(shoot *corev1beta1.Shoot) error { return s.reached(shoot, generation) }}, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait")
	return cmd
}

// readToChange reads a shoot whose spec can change, as it is not being deleted.
func (c *cli) readToChange(ctx context.Context, args []string) (*place, *corev1beta1.Shoot, error) {
	p, err := c.find(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	shoot, err := c.read(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if err := notDeleted(shoot, c.program()); err != nil {
		return nil, nil, fmt.Errorf("shoot %q: %w", p.name, err)
	}
	return p, shoot, nil
}

// slumber changes the spec of a shoot, and returns its new generation.
func (c *cli) slumber(ctx context.Context, s slumber, args []string) (*place, int64, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	p, shoot, err := c.readToChange(ctx, args)
	if err != nil {
		return nil, 0, err
	}
	before := shoot.DeepCopy()
	if shoot.Spec.Hibernation == nil {
		shoot.Spec.Hibernation = &corev1beta1.Hibernation{}
	}
	if s.hibernated != ptr.Deref(shoot.Spec.Hibernation.Enabled, false) {
		for _, constraint := range shoot.Status.Constraints {
			if s.hibernated && constraint.Type == corev1beta1.ShootHibernationPossible && constraint.Status == corev1beta1.ConditionFalse {
				fmt.Fprintf(c.ErrOut, "warning: it may not wake up again: %s\n", line(constraint.Message))
			}
		}
		shoot.Spec.Hibernation.Enabled = &s.hibernated
		if err := p.client.Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
			return nil, 0, c.explainShoot(err, p)
		}
	}
	_, err = fmt.Fprintf(c.Out, "shoot %s: %s\n", p.name, s.done)
	return p, shoot.Generation, err
}

func (s slumber) reached(shoot *corev1beta1.Shoot, generation int64) error {
	if err := reconciled(shoot, generation); err != nil {
		return err
	}
	if shoot.Status.Hibernated != s.hibernated {
		return errors.New("the last change is not reconciled yet")
	}
	return nil
}
