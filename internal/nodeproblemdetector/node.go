package nodeproblemdetector

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// heartbeat is how often conditions that do not change are written, as in the original. For 1,000 nodes these are three or four requests in a second.
	heartbeat = 5 * time.Minute
	// requestTimeout is the end of a request.
	requestTimeout = 10 * time.Second
)

// node writes conditions of the Node.
type node struct {
	client corev1client.NodeInterface
	name   string
	// written are the conditions of the Node, or nil before it was read. at is when they were written.
	written map[corev1.NodeConditionType]corev1.NodeCondition
	at      time.Time
}

// report writes conditions if they have changed, or if it is time for a heartbeat.
func (n *node) report(ctx context.Context, conditions []corev1.NodeCondition, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if n.written == nil {
		if err := n.read(ctx); err != nil {
			return err
		}
	}
	next, patch, changed := plan(n.written, conditions, now)
	if !changed && now.Sub(n.at) < heartbeat {
		return nil
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": patch}})
	if err != nil {
		return err
	}
	if _, err := n.client.Patch(ctx, n.name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write conditions of Node %q: %w", n.name, err)
	}
	n.written, n.at = next, now
	return nil
}

// read gets the conditions that this process has written before it was restarted, so that the times of their transitions stay.
func (n *node) read(ctx context.Context) error {
	object, err := n.client.Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Node %q: %w", n.name, err)
	}
	n.written = map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range object.Status.Conditions {
		for _, k := range kinds {
			if c.Type == k.condition {
				n.written[c.Type] = c
			}
		}
	}
	return nil
}

// plan returns the conditions with their times, the elements of a patch that writes them and deletes those that are not desired any more, and whether there
// is a difference besides times.
func plan(written map[corev1.NodeConditionType]corev1.NodeCondition, desired []corev1.NodeCondition, now time.Time) (
	next map[corev1.NodeConditionType]corev1.NodeCondition, patch []any, changed bool,
) {
	next, patch = map[corev1.NodeConditionType]corev1.NodeCondition{}, []any{}
	for _, c := range desired {
		before := written[c.Type]
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		changed = changed || before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message
		next[c.Type], patch = c, append(patch, c)
	}
	for _, k := range kinds {
		_, had := written[k.condition]
		if _, has := next[k.condition]; had && !has {
			changed, patch = true, append(patch, map[string]any{"type": k.condition, "$patch": "delete"})
		}
	}
	return next, patch, changed
}
