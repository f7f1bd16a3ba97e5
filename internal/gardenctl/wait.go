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

// waitTimeout is how long is waited if nothing else is said. Creating a cluster with slow machines fits in.
const waitTimeout = 30 * time.Minute

// errAbsent says that the shoot is not there (any more).
var errAbsent = errors.New("it does not exist")

// goal is what is waited for.
type goal struct {
	title string
	// reached returns nil when it is, a *hopeless error when it will not be, and otherwise what is missing. The shoot is nil if it is gone.
	reached func(*corev1beta1.Shoot) error
}

// hopeless is a state that no waiting helps with.
type hopeless struct{ error }

func (h *hopeless) Unwrap() error { return h.error }

func (c *cli) waitCommand() *cobra.Command {
	var what string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait [shoot] [NAME] --for=CONDITION", Short: "Wait until a shoot is as it should be", Args: cobra.MaximumNArgs(2),
		Long: c.examples(`wait shoot my-cluster --for=healthy
  PROGRAM wait shoot my-cluster --for=reconciled --timeout=1h
  PROGRAM wait shoot my-cluster --for=deleted
  PROGRAM wait shoot my-cluster --for=condition=APIServerAvailable`) + `
reconciled   the last change of the shoot is done
healthy      so it is, and all conditions are True
deleted      it is gone
condition=X  the condition or constraint X is True; condition=X=False and the like wait for another status

Progress goes to stderr. The exit code is 0 when it is so, and 1 when it has failed for good, time is up, or you may not watch it.`,
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
	cmd.Flags().DurationVar(&timeout, "timeout", waitTimeout, "how long to wait; with 0 it looks once")
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

// deleted is the goal that a shoot is gone. Another one of the same name is not waited for, if it is known which one it was.
func deleted(uid types.UID) goal {
	return goal{"deleted", func(shoot *corev1beta1.Shoot) error {
		switch {
		case shoot == nil || uid != "" && shoot.UID != uid:
			return nil
		case shoot.DeletionTimestamp == nil:
			return errors.New("nobody has deleted it")
		}
		return ended(shoot, 0)
	}}
}

// reconciled returns what keeps a shoot from being as its spec says, in a generation or a later one.
func reconciled(shoot *corev1beta1.Shoot, generation int64) error {
	switch {
	case shoot == nil:
		return &hopeless{errAbsent}
	case shoot.DeletionTimestamp != nil:
		return &hopeless{errors.New("it is being deleted")}
	case shoot.Annotations[constants.GardenerOperation] != "":
		return fmt.Errorf("operation %q is to be taken up", shoot.Annotations[constants.GardenerOperation])
	case shoot.Status.LastOperation == nil && shoot.Spec.SeedName == nil:
		return errors.New("waits for a seed")
	case shoot.Status.LastOperation == nil:
		return errors.New("waits for the gardenlet")
	}
	return ended(shoot, generation)
}

// ended returns what keeps the last operation from having succeeded, in a generation or a later one.
func ended(shoot *corev1beta1.Shoot, generation int64) error {
	last := shoot.Status.LastOperation
	if last == nil {
		return errors.New("waits for the gardenlet")
	}
	text := fmt.Sprintf("%s %s %d%%: %s", last.Type, last.State, last.Progress, line(last.Description))
	switch {
	case !over(last):
		return errors.New(text)
	case shoot.Status.ObservedGeneration < max(shoot.Generation, generation):
		// How the operation before it ended says nothing about this one.
		if shoot.DeletionTimestamp != nil {
			return errors.New("the deletion is to be taken up")
		}
		return errors.New("the last change is to be taken up")
	case last.State != corev1beta1.LastOperationStateSucceeded:
		return &hopeless{errors.New(text)}
	case last.Type == corev1beta1.LastOperationTypeMigrate, shoot.DeletionTimestamp != nil:
		return errors.New(text)
	}
	return nil
}

// over is whether nobody goes on with an operation by itself.
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
		return fmt.Errorf("it has no condition %s", typ)
	case !strings.EqualFold(string(condition.Status), status):
		return fmt.Errorf("its condition %s is %s: %s", typ, condition.Status, line(condition.Message))
	}
	return nil
}

// settled is whether no waiting changes what is missing.
func settled(missing error) bool {
	var lost *hopeless
	return missing == nil || errors.As(missing, &lost)
}

// await waits for a goal, and says what it waits for whenever that changes. Without a timeout it looks once.
func (c *cli) await(ctx context.Context, p *place, g goal, timeout time.Duration) error {
	missing, err := c.look(ctx, p, g)
	if err == nil && timeout > 0 && !settled(missing) {
		missing, err = c.watch(ctx, p, g, missing, timeout)
	}
	next := fmt.Sprintf("look with: %s describe shoot %s -n %s", c.program(), p.name, p.namespace)
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

// look returns what is missing for a goal now. That the shoot is not there is an error, unless it is the goal.
func (c *cli) look(ctx context.Context, p *place, g goal) (missing, err error) {
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

// watch returns what is missing for a goal when that is settled, or time is up. It knows what was missing before, should the garden be
// too slow to tell it anew. An error says that the garden refuses to tell.
func (c *cli) watch(ctx context.Context, p *place, g goal, missing error, timeout time.Duration) (stillMissing, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("time is up"))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	said := ""
	err = kube.AwaitShoot(ctx, strict{p.client, stop}, p.key(), func(shoot *corev1beta1.Shoot) error {
		if missing = g.reached(shoot); settled(missing) {
			return nil
		}
		return missing
	}, func(reason error) {
		if text := oneLine(reason); text != said {
			said = text
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

// isRefused is whether the garden does not let the user do something, or does not know the user (any more).
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// try does a request, and once more for a user who is not known: with the first refusal, a plugin of the kubeconfig gets new credentials.
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
