package gardenctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func (c *cli) describeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe [shoot] [NAME]", Short: "Show the state of a shoot, its errors, and what to do about them", Args: cobra.MaximumNArgs(2),
		Long: c.examples(`describe shoot my-cluster
  PROGRAM describe shoot my-cluster -n garden-dev`),
		ValidArgsFunction: c.completeShoot,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := within(cmd.Context(), requestTimeout)
			defer cancel()
			return c.describe(ctx, args)
		},
	}
	return cmd
}

func (c *cli) describe(ctx context.Context, args []string) error {
	p, err := c.find(ctx, args)
	if err != nil {
		return err
	}
	shoot, err := c.read(ctx, p)
	if err != nil {
		return err
	}
	d := description{shoot: shoot, project: p.target.Project, now: c.Clock.Now(), program: c.program(), color: c.Color}
	if d.project == "" {
		d.project = projectOf(shoot)
	}
	events := &corev1.EventList{}
	about := client.MatchingFields{"involvedObject.kind": "Shoot", "involvedObject.name": p.name}
	err = p.client.List(ctx, events, client.InNamespace(p.namespace), about)
	if err != nil { // the rest is useful without events
		fmt.Fprintln(c.ErrOut, "warning: no events: "+oneLine(err))
	}
	d.events = timeline(shoot, events.Items)
	return d.print(c.Out)
}

// projectOf returns the project of a shoot by its technical ID, "" if it has none yet.
func projectOf(shoot *corev1beta1.Shoot) string {
	middle, ok := strings.CutPrefix(shoot.Status.TechnicalID, constants.TechnicalIDPrefix+"-")
	if !ok {
		return ""
	}
	project, ok := strings.CutSuffix(middle, "--"+shoot.Name)
	if !ok {
		return ""
	}
	return project
}

// maxEvents is how many events are shown: the latest ones.
const maxEvents = 15

// timeline returns the last events of a shoot, the oldest first. Those of an earlier shoot of the same name are left out.
func timeline(shoot *corev1beta1.Shoot, events []corev1.Event) []corev1.Event {
	events = slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool {
		return e.InvolvedObject.UID != "" && e.InvolvedObject.UID != shoot.UID
	})
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		if order := happened(a).Compare(happened(b)); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return events[max(0, len(events)-maxEvents):]
}

// happened is when an event last occurred. Old and new clients write different fields.
func happened(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// mood is the severity of a status.
type mood int

const (
	fine mood = iota
	busy
	bad
)

// verdict is the state of a shoot in a few words, and what to do about it.
type verdict struct {
	mood mood
	text string
	next string // "" if there is nothing to do
}

// judge returns the status of a shoot in one line.
func judge(shoot *corev1beta1.Shoot, program string) verdict {
	last := shoot.Status.LastOperation
	on := " shoot " + shoot.Name + " -n " + shoot.Namespace
	switch {
	case last == nil && shoot.DeletionTimestamp != nil:
		return verdict{busy, "deletion requested; waiting for the gardenlet", ""}
	case last == nil && shoot.Spec.SeedName == nil:
		return verdict{busy, "waiting for the scheduler", "see the events for why no seed is chosen"}
	case last == nil:
		return verdict{busy, "waiting for the gardenlet of seed " + *shoot.Spec.SeedName, ""}
	case shoot.Generation > shoot.Status.ObservedGeneration && over(last): // its result is about an older generation
		if shoot.DeletionTimestamp != nil {
			return verdict{busy, "deletion requested; waiting for the gardenlet", ""}
		}
		return verdict{busy, "changed; waiting for the gardenlet", ""}
	}
	doing := strings.ToLower(string(last.Type))
	switch last.State {
	case corev1beta1.LastOperationStateFailed:
		return verdict{bad, doing + " failed, and is not retried", "fix the cause, then: " + program + " retry" + on}
	case corev1beta1.LastOperationStateAborted:
		return verdict{bad, doing + " was aborted", "continue with: " + program + " reconcile" + on}
	case corev1beta1.LastOperationStateError:
		return verdict{bad, doing + " fails, and is retried", ""}
	case corev1beta1.LastOperationStatePending:
		return verdict{busy, doing + " is pending", ""}
	case corev1beta1.LastOperationStateProcessing:
		return verdict{busy, doing + " is under way", ""}
	}
	if shoot.DeletionTimestamp != nil {
		return verdict{busy, "deletion requested", ""}
	}
	if unhealthy := notTrue(shoot.Status.Conditions); len(unhealthy) > 0 {
		return verdict{bad, fmt.Sprintf("unhealthy (%s)", strings.Join(unhealthy, ", ")), ""}
	}
	if shoot.Status.Hibernated {
		return verdict{fine, "hibernated", ""}
	}
	return verdict{fine, "healthy", ""}
}

// notTrue returns the types of the conditions that are not True.
func notTrue(conditions []corev1beta1.Condition) []string {
	var types []string
	for _, condition := range conditions {
		if condition.Status != corev1beta1.ConditionTrue {
			types = append(types, string(condition.Type))
		}
	}
	return types
}
