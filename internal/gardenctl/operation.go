package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// operation is something that is asked for by an annotation.
type operation struct {
	name, short, done string
	// refuse says why it makes no sense at present, or nothing.
	refuse func(shoot *corev1beta1.Shoot, program string) error
	// state is what it leads to. reached returns what is missing for that, as in a goal, of a shoot that was asked for it.
	state   string
	reached func(asked request, shoot *corev1beta1.Shoot) error
}

// request is what is known of a shoot since it was asked for an operation.
type request struct {
	// before is the shoot as it was then.
	before *corev1beta1.Shoot
	// generation is the one that the operation belongs to: for most, the API server counts one up.
	generation int64
}

var (
	reconcileOperation = operation{
		constants.GardenerOperationReconcile, "Do again what makes a shoot as its spec says", "reconciliation asked for",
		func(shoot *corev1beta1.Shoot, program string) error {
			switch last := shoot.Status.LastOperation; {
			case last == nil:
				return errors.New("it is not made yet, and that begins by itself")
			case last.State == corev1beta1.LastOperationStateFailed:
				return fmt.Errorf("it has failed for good; use: %s retry shoot %s -n %s", program, shoot.Name, shoot.Namespace)
			}
			return nil
		},
		"reconciled", reconciledAsAsked,
	}
	retryOperation = operation{
		constants.ShootOperationRetry, "Try again a shoot that has failed for good", "retry asked for",
		func(shoot *corev1beta1.Shoot, program string) error {
			if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateFailed {
				return fmt.Errorf("it has not failed; use: %s reconcile shoot %s -n %s", program, shoot.Name, shoot.Namespace)
			}
			return nil
		},
		"reconciled", reconciledAsAsked,
	}
	maintainOperation = operation{
		constants.ShootOperationMaintain, "Do the maintenance of a shoot now", "maintenance asked for",
		notDeleted, "maintained", maintained,
	}
)

func reconciledAsAsked(asked request, shoot *corev1beta1.Shoot) error {
	return reconciled(shoot, asked.generation)
}

// maintained does not wait for what follows on a maintenance that has failed: the reconciliation may do well, or may not even begin.
func maintained(asked request, shoot *corev1beta1.Shoot) error {
	if shoot != nil {
		former, last := asked.before.Status.LastMaintenance, shoot.Status.LastMaintenance
		if last != nil && last.State == corev1beta1.LastOperationStateFailed && (former == nil || !former.TriggeredTime.Equal(&last.TriggeredTime)) {
			what := last.Description
			if last.FailureReason != nil {
				what += "; " + *last.FailureReason
			}
			return &hopeless{errors.New("the maintenance has failed: " + line(what))}
		}
	}
	return reconciled(shoot, asked.generation)
}

func (c *cli) operationCommand(o operation) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: o.name + " [shoot] [NAME]", Short: o.short, Args: cobra.MaximumNArgs(2),
		Long: c.examples(o.name + ` shoot my-cluster
  PROGRAM ` + o.name + ` shoot my-cluster --wait`),
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, asked, err := c.operate(cmd.Context(), o, args)
			if err != nil || !wait {
				return err
			}
			return c.await(cmd.Context(), p, goal{o.state, func(shoot *corev1beta1.Shoot) error { return o.reached(asked, shoot) }}, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait")
	return cmd
}

// operate sets the annotation.
func (c *cli) operate(ctx context.Context, o operation, args []string) (p *place, asked request, err error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	p, err = c.find(ctx, args)
	if err != nil {
		return nil, asked, err
	}
	shoot, err := c.read(ctx, p)
	if err != nil {
		return nil, asked, err
	}
	if err := o.refuse(shoot, c.program()); err != nil {
		return nil, asked, fmt.Errorf("shoot %q: %w", p.name, err)
	}
	if pending := shoot.Annotations[constants.GardenerOperation]; pending != "" && pending != o.name {
		return nil, asked, fmt.Errorf("shoot %q: operation %q is not taken up yet; wait for it with: %s wait shoot %s -n %s --for=reconciled",
			p.name, pending, c.program(), p.name, p.namespace)
	}
	asked.before = shoot.DeepCopy()
	if err := c.annotate(ctx, p, shoot, constants.GardenerOperation, o.name); err != nil {
		return nil, asked, err
	}
	if shoot, err = c.read(ctx, p); err != nil {
		return nil, asked, err
	}
	if isOn(shoot.Annotations[constants.ShootIgnore]) {
		fmt.Fprintf(c.ErrOut, "warning: the shoot has the annotation %s: %s; nothing happens then until it is gone\n", constants.ShootIgnore, leftAlone)
	}
	_, err = fmt.Fprintf(c.Out, "shoot %s: %s\n", p.name, o.done)
	asked.generation = shoot.Generation
	return p, asked, err
}

func (c *cli) annotate(ctx context.Context, p *place, shoot *corev1beta1.Shoot, key, value string) error {
	err := kube.PatchMetadata(ctx, p.client, shoot, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value)
	})
	return c.explainShoot(err, p)
}

func (c *cli) deleteCommand() *cobra.Command {
	var yes, wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "delete {shoot [NAME] | NAME}", Short: "Delete a shoot with all that is in it", Args: cobra.RangeArgs(1, 2),
		Long: c.examples(`delete shoot my-cluster              # asks
  PROGRAM delete shoot my-cluster --yes --wait`) + `
It confirms the deletion with an annotation and deletes the shoot: its machines, disks, and data. There is no way back.`,
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, shoot, err := c.remove(cmd.Context(), args, yes)
			if err != nil || !wait {
				return err
			}
			return c.await(cmd.Context(), p, deleted(shoot.UID), timeout)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask; the shoot has to be named")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is gone")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait")
	return cmd
}

func (c *cli) remove(ctx context.Context, args []string, yes bool) (*place, *corev1beta1.Shoot, error) {
	p, shoot, err := func() (*place, *corev1beta1.Shoot, error) {
		ctx, cancel := within(ctx, requestTimeout)
		defer cancel()
		p, err := c.find(ctx, args)
		if err != nil {
			return nil, nil, err
		}
		// An empty variable of a script must not mean the targeted shoot.
		if _, err := c.shootArgument(args, Target{Shoot: c.flags.shoot}); err != nil && yes {
			return nil, nil, fmt.Errorf("--yes goes with a name, also for the shoot that is targeted; say: %s delete shoot %s --yes", c.program(), p.name)
		}
		shoot, err := c.read(ctx, p)
		return p, shoot, err
	}()
	if err != nil {
		return nil, nil, err
	}
	if !yes {
		if err := c.confirm(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if err := c.annotate(ctx, p, shoot, constants.ConfirmationDeletion, "true"); err != nil {
		return nil, nil, err
	}
	// What was asked about is what goes, not a new shoot of the same name.
	switch err := p.client.Delete(ctx, shoot, client.Preconditions{UID: &shoot.UID}); {
	case apierrors.IsForbidden(err): // it may be that a second person has to delete it, and the error says so
		return nil, nil, fmt.Errorf("shoot %q: its deletion is confirmed, but not done: %w", p.name, err)
	case err != nil:
		return nil, nil, c.explainShoot(err, p)
	}
	_, err = fmt.Fprintf(c.Out, "shoot %s: deletion asked for\n", p.name)
	return p, shoot, err
}

// confirm asks for the name of the shoot. Who interrupts it does not have to answer.
func (c *cli) confirm(ctx context.Context, p *place) error {
	if !c.Interactive {
		return fmt.Errorf("nobody can be asked whether shoot %q in namespace %q is to be deleted; say --yes", p.name, p.namespace)
	}
	fmt.Fprintf(c.ErrOut, "Shoot %s in namespace %s is deleted with all its machines and data. Type its name to go on: ", p.name, p.namespace)
	answer := make(chan string, 1)
	go func() {
		var text string
		_, _ = fmt.Fscanln(c.In, &text) // no answer is an answer
		answer <- text
	}()
	select {
	case text := <-answer:
		if text != p.name {
			return errors.New("not confirmed; nothing is deleted")
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
