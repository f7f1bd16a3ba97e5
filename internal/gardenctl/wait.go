package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// waitTimeout is the default timeout: enough to create a cluster with slow machines.
const waitTimeout = 30 * time.Minute

// errAbsent says that the shoot does not exist (any more).
var errAbsent = errors.New("it does not exist")

// goal is a state to wait for.
type goal struct {
	title string
	// reached returns nil when it is reached, a *hopeless error when it will not be, and otherwise what is missing. The shoot is nil if it is
	// gone.
	reached func(*corev1beta1.Shoot) error
}

// hopeless is a reason why a goal will not be reached.
type hopeless struct{ error }

func (h *hopeless) Unwrap() error { return h.error }

func (c *cli) waitCommand() *cobra.Command {
	var what string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait [shoot] [NAME] --for=CONDITION", Short: "Wait until a shoot is healthy, reconciled or deleted", Args: cobra.MaximumNArgs(2),
		Long: c.examples(`wait shoot my-cluster --for=healthy
  PROGRAM wait shoot my-cluster --for=reconciled --timeout=1h
  PROGRAM wait shoot my-cluster --for=deleted
  PROGRAM wait shoot my-cluster --for=condition=APIServerAvailable`) + `
reconciled   the last change of the shoot is done
healthy      so it is, and all conditions are True
deleted      it is gone
condition=X  the condition or constraint X is True; condition=X=False and the like wait for another status

Progress goes to stderr. The exit code is 0 when the condition is met, and 1 when the operation has failed, the timeout is over, or you may not watch the shoot.`,
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := parseGoal(what)
			if err != nil {
				return err
			}
			p, err := func() (*place, error) {
				ctx, cancel := within(cmd.Context(), requestTimeout)
				defer cancel()
				return c.find(ctx, args)
			}()
			if err != nil {
				return err
			}
			return c.await(cmd.Context(), p, g, timeout)
		},
	}
	cmd.Flags().StringVar(&what, "for", "healthy", "healthy, reconciled, deleted, or condition=TYPE[=STATUS]")
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait; 0 checks once")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"healthy", "reconciled", "deleted", "condition="}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func parseGoal(what string) (goal, error) {
	switch what {
	case "healthy":
		return goal{"healthy", healthy}, nil
	case "reconciled":
		return goal{"reconciled", func(shoot *corev1beta1.Shoot) error { return reconciled(shoot, 0) }}, nil
	case "deleted":
		return deleted(""), nil
	}
	kind, condition, _ := strings.Cut(what, "=")
	if kind != "condition" || condition == "" {
		return goal{}, fmt.Errorf("--for must be healthy, reconciled, deleted, or condition=TYPE[=STATUS], not %q", what)
	}
	typ, status, ok := strings.Cut(condition, "=")
	if !ok {
		status = string(corev1beta1.ConditionTrue)
	}
	return goal{fmt.Sprintf("%s=%s", typ, status), func(shoot *corev1beta1.Shoot) error { return hasCondition(shoot, typ, status) }}, nil
}

// deleted is the goal that a shoot is gone. With a UID, it does not wait for another shoot of the same name.
func deleted(uid types.UID) goal {
	return goal{"deleted", func(shoot *corev1beta1.Shoot) error {
		switch {
		case shoot == nil || uid != "" && shoot.UID != uid:
			return nil
		case shoot.DeletionTimestamp == nil:
			return errors.New("its deletion is not requested")
		}
		return ended(shoot, 0)
	}}
}

// reconciled returns why a generation of a shoot, or a later one, is not reconciled.
func reconciled(shoot *corev1beta1.Shoot, generation int64) error {
	switch {
	case shoot == nil:
		return &hopeless{errAbsent}
	case shoot.DeletionTimestamp != nil:
		return &hopeless{errors.New("it is being deleted")}
	case shoot.Annotations[constants.GardenerOperation] != "":
		return fmt.Errorf("operation %q is pending", shoot.Annotations[constants.GardenerOperation])
	case shoot.Status.LastOperation == nil && shoot.Spec.SeedName == nil:
		return errors.New("waiting for the scheduler")
	case shoot.Status.LastOperation == nil:
		return errors.New("waiting for the gardenlet")
	}
	return ended(shoot, generation)
}

// ended returns why the last operation has not succeeded, for a generation or a later one.
func ended(shoot *corev1beta1.Shoot, generation int64) error {
	last := shoot.Status.LastOperation
	if last == nil {
		return errors.New("waiting for the gardenlet")
	}
	text := fmt.Sprintf("%s %s %d%%: %s", last.Type, last.State, last.Progress, line(last.Description))
	switch {
	case !over(last):
		return errors.New(text)
	case shoot.Status.ObservedGeneration < max(shoot.Generation, generation):
		// The result is that of the operation before this generation.
		if shoot.DeletionTimestamp != nil {
			return errors.New("the deletion has not started yet")
		}
		return errors.New("the last change is not reconciled yet")
	case last.State != corev1beta1.LastOperationStateSucceeded:
		return &hopeless{errors.New(text)}
	case last.Type == corev1beta1.LastOperationTypeMigrate, shoot.DeletionTimestamp != nil:
		return errors.New(text)
	}
	return nil
}

// over reports whether the gardenlet does not continue an operation by itself.
func over(last *corev1beta1.LastOperation) bool {
	switch last.State {
	case corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateFailed, corev1beta1.LastOperationStateAborted:
		return true
	case corev1beta1.LastOperationStateError, corev1beta1.LastOperationStatePending, corev1beta1.LastOperationStateProcessing:
	}
	return false
}

func healthy(shoot *corev1beta1.Shoot) error {
	if err := reconciled(shoot, 0); err != nil {
		return err
	}
	return kube.ShootHealthy(shoot)
}

func hasCondition(shoot *corev1beta1.Shoot, typ, status string) error {
	if shoot == nil {
		return &hopeless{errAbsent}
	}
	condition := kube.Condition(shoot.Status.Conditions, corev1beta1.ConditionType(typ))
	if condition == nil {
		condition = kube.Condition(shoot.Status.Constraints, corev1beta1.ConditionType(typ))
	}
	switch {
	case condition == nil:
		return fmt.Errorf("condition %s is missing", typ)
	case !strings.EqualFold(string(condition.Status), status):
		return fmt.Errorf("condition %s is %s: %s", typ, condition.Status, line(condition.Message))
	}
	return nil
}

// settled reports whether waiting is over: the goal is reached, or will not be.
func settled(missing error) bool {
	var lost *hopeless
	return missing == nil || errors.As(missing, &lost)
}

// await waits for a goal, and prints what is missing whenever that changes. Without a timeout it checks once.
func (c *cli) await(ctx context.Context, p *place, g goal, timeout time.Duration) error {
	missing, err := c.check(ctx, p, g)
	if err == nil && timeout > 0 && !settled(missing) {
		missing, err = c.watch(ctx, p, g, missing, timeout)
	}
	next := fmt.Sprintf("see: %s describe shoot %s -n %s", c.program(), p.name, p.namespace)
	switch {
	case err != nil:
		return c.explainShoot(err, p)
	case missing == nil:
		_, err := fmt.Fprintf(c.Out, "shoot %s is %s\n", p.name, g.title)
		return err
	case settled(missing):
		return fmt.Errorf("shoot %q will not be %s: %w; %s", p.name, g.title, missing, next)
	case timeout <= 0:
		return fmt.Errorf("shoot %q is not %s: %w; %s", p.name, g.title, missing, next)
	}
	return fmt.Errorf("waited %s for shoot %q to be %s: %w; %s", timeout, p.name, g.title, missing, next)
}

// check returns what is missing for a goal now. A missing shoot is an error, unless that is the goal.
func (c *cli) check(ctx context.Context, p *place, g goal) (missing, err error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	shoot := &corev1beta1.Shoot{}
	switch err := p.client.Get(ctx, p.key(), shoot); {
	case apierrors.IsNotFound(err) && g.reached(nil) == nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return g.reached(shoot), nil
}

// watch returns what is missing for a goal when that is settled, or after the timeout. missing is what was missing before, in case the
// garden does not respond in time. An error says that the garden rejects the requests.
func (c *cli) watch(ctx context.Context, p *place, g goal, missing error, timeout time.Duration) (stillMissing, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("timed out"))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reported := ""
	err = kube.AwaitShoot(ctx, strict{p.client, stop}, p.key(), func(shoot *corev1beta1.Shoot) error {
		if missing = g.reached(shoot); settled(missing) {
			return nil
		}
		return missing
	}, func(reason error) {
		if text := oneLine(reason); text != reported {
			reported = text
			fmt.Fprintln(c.ErrOut, text)
		}
	})
	switch {
	case err == nil:
		return missing, nil
	case isRefused(context.Cause(ctx)):
		return nil, context.Cause(ctx)
	}
	return fmt.Errorf("%w (%w)", missing, context.Cause(ctx)), nil
}

// strict is a client that stops a wait when the garden refuses to list or to watch; an informer would go on trying.
type strict struct {
	client.WithWatch
	stop context.CancelCauseFunc
}

// isRefused reports whether the garden forbids a request, or rejects the credentials (which may have expired).
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// try sends a request, and repeats it once if the credentials are rejected: a plugin of the kubeconfig then gets new ones.
func (s strict) try(request func() error) error {
	err := request()
	if apierrors.IsUnauthorized(err) {
		err = request()
	}
	if isRefused(err) {
		s.stop(err)
	}
	return err
}

// List lists objects.
func (s strict) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return s.try(func() error { return s.WithWatch.List(ctx, list, options...) })
}

// Watch watches objects.
func (s strict) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (w watch.Interface, err error) {
	err = s.try(func() error {
		w, err = s.WithWatch.Watch(ctx, list, options...)
		return err
	})
	return w, err
}
