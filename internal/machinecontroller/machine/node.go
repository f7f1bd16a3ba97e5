package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// withTemplate returns the Node with the template of its Machine applied, and whether that differs. Labels, annotations and taints that were
// removed from the template are removed from the Node; those of other clients are kept.
func withTemplate(machine *machinev1alpha1.Machine, before *corev1.Node) (*corev1.Node, bool, error) {
	template := machine.Spec.NodeTemplate
	node := before.DeepCopy()
	var last machinev1alpha1.NodeTemplateSpec
	if text := node.Annotations[machinev1alpha1.LastAppliedALTAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &last); err != nil {
			last = machinev1alpha1.NodeTemplateSpec{} // not valid: nothing is removed, and the annotation is rewritten
		}
	}
	desired := machinev1alpha1.NodeTemplateSpec{}
	desired.ObjectMeta.Labels, desired.ObjectMeta.Annotations, desired.Spec.Taints = template.ObjectMeta.Labels, template.ObjectMeta.Annotations, template.Spec.Taints
	text, err := json.Marshal(desired)
	if err != nil {
		return nil, false, err
	}
	node.Labels = merge(node.Labels, last.ObjectMeta.Labels, desired.ObjectMeta.Labels)
	node.Annotations = merge(node.Annotations, last.ObjectMeta.Annotations, desired.ObjectMeta.Annotations)
	node.Spec.Taints = mergeTaints(node.Spec.Taints, last.Spec.Taints, desired.Spec.Taints)
	node.Labels[machinev1alpha1.MachineLabelKey] = machine.Name
	delete(node.Annotations, machinev1alpha1.NotManagedByMCM)
	node.Annotations[machinev1alpha1.LastAppliedALTAnnotation] = string(text)
	if node.DeletionTimestamp == nil {
		controllerutil.AddFinalizer(node, machinev1alpha1.NodeFinalizerName)
	}
	return node, !apiequality.Semantic.DeepEqual(before, node), nil
}

// merge removes entries that were applied last and are not desired any more, and sets the desired ones.
func merge(current, last, desired map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range current {
		_, applied := last[key]
		if _, keep := desired[key]; !applied || keep {
			out[key] = value
		}
	}
	maps.Copy(out, desired)
	return out
}

func mergeTaints(current, last, desired []corev1.Taint) []corev1.Taint {
	contains := func(taints []corev1.Taint, t corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(other corev1.Taint) bool { return other.MatchTaint(&t) })
	}
	var out []corev1.Taint
	for _, taint := range current {
		if i := slices.IndexFunc(desired, func(other corev1.Taint) bool { return other.MatchTaint(&taint) }); i >= 0 {
			merged := desired[i]
			merged.TimeAdded = taint.TimeAdded // not part of the template
			out = append(out, merged)
		} else if !contains(last, taint) {
			out = append(out, taint)
		}
	}
	for _, taint := range desired {
		if !contains(out, taint) {
			out = append(out, taint)
		}
	}
	return out
}

// nodeCondition returns the condition of a type, nil if there is none.
func nodeCondition(node *corev1.Node, typ corev1.NodeConditionType) *corev1.NodeCondition {
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == typ })
	if at < 0 {
		return nil
	}
	return &node.Status.Conditions[at]
}

// setNodeCondition writes a condition of a Node with the current time, or removes it if it has no status. Other conditions are merged by the API server.
func (r *reconciler) setNodeCondition(ctx context.Context, before *corev1.Node, desired corev1.NodeCondition) error {
	node := before.DeepCopy()
	now := metav1.NewTime(r.clock.Now())
	desired.LastHeartbeatTime, desired.LastTransitionTime = now, now
	switch current := nodeCondition(node, desired.Type); {
	case desired.Status == "":
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == desired.Type })
	case current != nil:
		*current = desired
	default:
		node.Status.Conditions = append(node.Status.Conditions, desired)
	}
	if err := r.targetCache.Status().Patch(ctx, node, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write condition %s of Node %s: %w", desired.Type, node.Name, err)
	}
	return nil
}
