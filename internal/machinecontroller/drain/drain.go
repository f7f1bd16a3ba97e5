// Package drain drains a Node before its machine is deleted: it cordons it, evicts its pods with respect to their disruption budgets, and
// waits until their volumes are detached.
//
// It reads and writes objects of the target cluster. A pass does what is possible at the moment and returns what is left. It keeps no state, so
// a new process continues where the last one ended.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Drainer drains Nodes.
type Drainer struct {
	// TargetCache is a client of the target cluster, with pods and VolumeAttachments read from the API server: Nodes are drained rarely, and a
	// cache of all pods would be large.
	TargetCache client.Client
}

// Left is what is left on a Node after a pass.
type Left struct {
	// Ending are pods that are being deleted.
	Ending []string
	// Refused are pods whose eviction was refused, with the reason.
	Refused []string
	// Volumes are volumes that are still attached after all pods have ended.
	Volumes []string
}

// Pods reports whether there are pods left.
func (l Left) Pods() bool { return len(l.Ending)+len(l.Refused) > 0 }

// Nothing reports whether the Node is drained.
func (l Left) Nothing() bool { return !l.Pods() && len(l.Volumes) == 0 }

// shown is how many names a description has; the others are counted.
const shown = 5

func (l Left) String() string {
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{
		{"pods that are ending", l.Ending},
		{"pods that cannot be evicted yet", l.Refused},
		{"volumes that are being detached", l.Volumes},
	} {
		if len(part.names) == 0 {
			continue
		}
		slices.Sort(part.names)
		names := strings.Join(part.names[:min(shown, len(part.names))], ", ")
		if more := len(part.names) - shown; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, part.what+": "+names)
	}
	return strings.Join(parts, "; ")
}

// Pass drains a Node as far as possible at the moment. With force, pods are deleted at once, whatever their disruption budgets.
func (d *Drainer) Pass(ctx context.Context, node string, force bool) (Left, error) {
	var left Left
	if err := d.cordon(ctx, node); err != nil {
		return left, err
	}
	pods := &corev1.PodList{}
	if err := d.TargetCache.List(ctx, pods, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)}); err != nil {
		return left, fmt.Errorf("list the pods of Node %s: %w", node, err)
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		name := pod.Namespace + "/" + pod.Name
		switch decide(pod, force) {
		case stays:
			continue
		case ends:
			left.Ending = append(left.Ending, name)
			continue
		case isEvicted:
			refused, err := d.evict(ctx, pod)
			if err != nil {
				errs = append(errs, err)
			}
			if refused != "" {
				left.Refused = append(left.Refused, fmt.Sprintf("%s (%s)", name, refused))
				continue
			}
		case isDeleted:
			options := &client.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID}}
			if err := d.TargetCache.Delete(ctx, pod, options); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				errs = append(errs, fmt.Errorf("delete Pod %s: %w", name, err))
			}
		}
		left.Ending = append(left.Ending, name)
	}
	if err := errors.Join(errs...); err != nil || left.Pods() {
		return left, err
	}
	attachments := &storagev1.VolumeAttachmentList{}
	if err := d.TargetCache.List(ctx, attachments); err != nil {
		return left, fmt.Errorf("list VolumeAttachments: %w", err)
	}
	for _, attachment := range attachments.Items {
		if attachment.Spec.NodeName == node {
			left.Volumes = append(left.Volumes, ptr.Deref(attachment.Spec.Source.PersistentVolumeName, attachment.Name))
		}
	}
	return left, nil
}

// cordon makes a Node unschedulable.
func (d *Drainer) cordon(ctx context.Context, name string) error {
	node := &corev1.Node{}
	if err := d.TargetCache.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("read Node %s: %w", name, err)
	}
	if node.Spec.Unschedulable {
		return nil
	}
	patch := client.MergeFrom(node.DeepCopy())
	node.Spec.Unschedulable = true
	if err := d.TargetCache.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("cordon Node %s: %w", name, err)
	}
	return nil
}

// evictWithin is how long an eviction may take. If the server responds with Retry-After, as for a new disruption budget, the client would retry
// until then. The next pass retries as well, and other pods do not have to wait.
const evictWithin = 5 * time.Second

// evict evicts a pod, and returns why that was refused.
func (d *Drainer) evict(ctx context.Context, pod *corev1.Pod) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, evictWithin)
	defer cancel()
	err := d.TargetCache.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return "", nil
	case apierrors.IsTooManyRequests(err):
		return "its disruption budget allows no disruption now", nil
	case ctx.Err() != nil:
		return "no response yet", nil
	case apierrors.IsInternalError(err):
		// The response for a pod with several disruption budgets, which can never be evicted.
		return err.Error(), nil
	default:
		return "", fmt.Errorf("evict Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
}

type action int

const (
	stays     action = iota // is not evicted
	ends                    // is being deleted already
	isEvicted               // if its disruption budget allows
	isDeleted               // at once
)

// decide returns the action for a pod.
func decide(pod *corev1.Pod, force bool) action {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return stays
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return stays
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return stays
	case force && pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0:
		// It has ended. Only a finalizer keeps the object, such as that of a Job.
		return stays
	case force:
		return isDeleted
	case pod.DeletionTimestamp != nil:
		return ends
	default:
		return isEvicted
	}
}
