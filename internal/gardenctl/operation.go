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

// operation is an operation that is requested by an annotation.
type operation struct {
	name, short, done string
	// refuse returns why the operation is not possible now, or nil.
	refuse func(shoot *corev1beta1.Shoot, program string) error
	// state is its result. reached returns what is missing for it, as in a goal.
	state   string
	reached func(r request, shoot *corev1beta1.Shoot) error
}

// request is a requested operation.
type request struct {
	// before is the shoot at the time of the request.
	before *corev1beta1.Shoot
	// generation is the generation of the operation: for most operations, the API server increases it.
	generation int64
}

var (
	reconcileOperation = operation{
		constants.GardenerOperationReconcile, "Reconcile a shoot", "reconciliation requested",
		func(shoot *corev1beta1.Shoot, program string) error {
			switch last := shoot.Status.LastOperation; {
			case last == nil:
				return errors.New("it is not created yet, and its creation starts by itself")
			case last.State == corev1beta1.LastOperationStateFailed:
				return fmt.Errorf("it has failed, and is not retried; use: %s retry shoot %s -n %s", program, shoot.Name, shoot.Namespace)
			}
			return nil
		},
		"reconciled", reconciledSince,
	}
	retryOperation = operation{
		constants.ShootOperationRetry, "Retry the last operation of a shoot that has failed", "retry requested",
		func(shoot *corev1beta1.Shoot, program string) error {
			if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateFailed {
				return fmt.Errorf("it has not failed; use: %s reconcile shoot %s -n %s", program, shoot.Name, shoot.Namespace)
			}
			return nil
		},
		"reconciled", reconciledSince,
	}
	maintainOperation = operation{
		constants.ShootOperationMaintain, "Maintain a shoot now", "maintenance requested",
		notDeleted, "maintained", maintained,
	}
)

func reconciledSince(r request, shoot *corev1beta1.Shoot) error {
	return reconciled(shoot, r.generation)
}

// maintained fails for a failed maintenance without waiting for the reconciliation, which may succeed, or may not even start.
func maintained(r request, shoot *corev1beta1.Shoot) error {
	if shoot != nil {
		former, last := r.before.Status.LastMaintenance, shoot.Status.LastMaintenance
		if last != nil && last.State == corev1beta1.LastOperationStateFailed && (former == nil || !former.TriggeredTime.Equal(&last.TriggeredTime)) {
			what := last.Description
			if last.FailureReason != nil {
				what += "; " + *last.FailureReason
			}
			return &hopeless{errors.New("the maintenance has failed: " + line(what))}
		}
	}
	return reconciled(shoot, r.generation)
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
			p, r, err := c.operate(cmd.Context(), o, args)
			if err != nil || !wait {
				return err
			}
			return c.await(cmd.Context(), p, goal{o.state, func(shoot *corev1beta1.Shoot) error { return o.reached(r, shoot) }}, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait")
	return cmd
}

// operate sets the annotation.
func (c *cli) operate(ctx context.Context, o operation, args []string) (p *place, r request, err error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	p, err = c.find(ctx, args)
	if err != nil {
		return nil, r, err
	}
	shoot, err := c.read(ctx, p)
	if err != nil {
		return nil, r, err
	}
	if err := o.refuse(shoot, c.program()); err != nil {
		return nil, r, fmt.Errorf("shoot %q: %w", p.name, err)
	}
	if pending := shoot.Annotations[constants.GardenerOperation]; pending != "" && pending != o.name {
		return nil, r, fmt.Errorf("shoot %q: operation %q is pending; wait for it with: %s wait shoot %s -n %s --for=reconciled",
			p.name, pending, c.program(), p.name, p.namespace)
	}
	r.before = shoot.DeepCopy()
	if err := c.annotate(ctx, p, shoot, constants.GardenerOperation, o.name); err != nil {
		return nil, r, err
	}
	if shoot, err = c.read(ctx, p); err != nil {
		return nil, r, err
	}
	if isOn(shoot.Annotations[constants.ShootIgnore]) {
		fmt.Fprintf(c.ErrOut, "warning: the shoot has the annotation %s: %s; the operation then waits until it is removed\n", constants.ShootIgnore, ignored)
	}
	_, err = fmt.Fprintf(c.Out, "shoot %s: %s\n", p.name, o.done)
	r.generation = shoot.Generation
	return p, r, err
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
		Use: "delete {shoot [NAME] | NAME}", Short: "Delete a shoot with all its data", Args: cobra.RangeArgs(1, 2),
		Long: c.examples(`delete shoot my-cluster              # asks for confirmation
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
		// An empty variable of a script must not delete the targeted shoot.
		if _, err := c.shootArgument(args, Target{Shoot: c.flags.shoot}); err != nil && yes {
			return nil, nil, fmt.Errorf("--yes needs the name of the shoot, also if it is targeted; use: %s delete shoot %s --yes", c.program(), p.name)
		}
		shoot, err := c.read(ctx, p)
		return p, shoot, err
	}()
	if err != nil {
		return nil, nil, err
	}
	if !yes {
		if !c.Interactive {
			return nil, nil, fmt.Errorf("cannot ask for confirmation without a terminal to delete shoot %q in namespace %q; add --yes", p.name, p.namespace)
		}
		question := fmt.Sprintf("Shoot %s in namespace %s is deleted with all its machines and data. Type its name to continue: ", p.name, p.namespace)
		if err := c.confirm(ctx, question, p.name); err != nil {
			return nil, nil, fmt.Errorf("%w; nothing is deleted", err)
		}
	}
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if err := c.annotate(ctx, p, shoot, constants.ConfirmationDeletion, "true"); err != nil {
		return nil, nil, err
	}
	// Delete the confirmed shoot, not a new one of the same name.
	switch err := p.client.Delete(ctx, shoot, client.Preconditions{UID: &shoot.UID}); {
	case apierrors.IsForbidden(err): // a second user may have to delete it, which the error says
		return nil, nil, fmt.Errorf("shoot %q: its deletion is confirmed, but not done: %w", p.name, err)
	case err != nil:
		return nil, nil, c.explainShoot(err, p)
	}
	_, err = fmt.Fprintf(c.Out, "shoot %s: deletion requested\n", p.name)
	return p, shoot, err
}

// confirm asks for a name. It returns when ctx is done, without an answer.
func (c *cli) confirm(ctx context.Context, question, name string) error {
	fmt.Fprint(c.ErrOut, question)
	answer := make(chan string, 1)
	go func() {
		var text string
		_, _ = fmt.Fscanln(c.In, &text) // without input, the text is empty
		answer <- text
	}()
	select {
	case text := <-answer:
		if text != name {
			return errors.New("not confirmed")
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
