package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/quantities"
)

// withVirtualCapacity returns the capacity of a Node with what its class adds to it, and the annotation that says what was added; empty if nothing was. What was
// removed from the class is removed from the Node. The kubelet takes it over into what pods can request.
func withVirtualCapacity(class *machinev1alpha1.MachineClass, node *corev1.Node) (corev1.ResourceList, string, error) {
	added := corev1.ResourceList{}
	if class.NodeTemplate != nil {
		maps.Copy(added, class.NodeTemplate.VirtualCapacity)
	}
	// The kubelet writes what it measures, such as memory.
	maps.DeleteFunc(added, func(name corev1.ResourceName, _ resource.Quantity) bool { return !strings.Contains(string(name), "/") })
	last := lastVirtualCapacity(node)
	capacity := corev1.ResourceList{}
	for name, quantity := range node.Status.Capacity {
		if _, removed := last[name]; !removed || !strings.Contains(string(name), "/") {
			capacity[name] = quantity
		}
	}
	maps.Copy(capacity, added)
	if len(added) == 0 {
		return capacity, "", nil
	}
	text, err := json.Marshal(added)
	return capacity, string(text), err
}

// lastVirtualCapacity returns what was added to the capacity of a Node, by its name. Only the names matter: users of the shoot can write quantities there that
// take hours to parse. An annotation that is not valid counts as none, and is rewritten.
func lastVirtualCapacity(node *corev1.Node) map[corev1.ResourceName]json.RawMessage {
	last := map[corev1.ResourceName]json.RawMessage{}
	if json.Unmarshal([]byte(node.Annotations[machinev1alpha1.LastAppliedVirtualCapacityAnnotation]), &last) != nil {
		return nil
	}
	return last
}

// sameCapacity compares capacities. Those of a Node may have quantities from users of the shoot that take hours to compare.
func sameCapacity(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool {
		if quantities.Excessive(x) || quantities.Excessive(y) {
			return quantities.Excessive(x) && quantities.Excessive(y)
		}
		return x.Cmp(y) == 0
	})
}

// syncVirtualCapacity writes the virtual capacity of the class to the Node of a Machine.
func (r *reconciler) syncVirtualCapacity(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) error {
	class := &machinev1alpha1.MachineClass{}
	if err := r.controlCache.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Class.Name}, class); err != nil {
		return client.IgnoreNotFound(err)
	}
	capacity, text, err := withVirtualCapacity(class, node)
	if err != nil {
		return err
	}
	annotate := func(text string) error {
		return client.IgnoreNotFound(kube.PatchMetadata(ctx, r.targetCache, node, func(o *metav1.PartialObjectMetadata) {
			if text == "" {
				delete(o.Annotations, machinev1alpha1.LastAppliedVirtualCapacityAnnotation)
				return
			}
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, machinev1alpha1.LastAppliedVirtualCapacityAnnotation, text)
		}))
	}
	if desired := node.DeepCopy(); !sameCapacity(node.Status.Capacity, capacity) {
		// What is added is annotated before, and what is removed after it: otherwise an interruption would leave capacity that is never removed.
		if text != "" {
			both := corev1.ResourceList{}
			for name := range lastVirtualCapacity(node) {
				both[name] = resource.Quantity{}
			}
			maps.Copy(both, class.NodeTemplate.VirtualCapacity)
			before, err := json.Marshal(both)
			if err != nil {
				return err
			}
			if err := annotate(string(before)); err != nil {
				return err
			}
		}
		desired.Status.Capacity = capacity
		if err := r.targetCache.Status().Patch(ctx, desired, client.MergeFrom(node)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("write the virtual capacity of Node %s: %w", node.Name, err)
		}
	}
	return annotate(text)
}
