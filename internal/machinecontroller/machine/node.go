package machine

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// withTemplate returns the Node as its machine's template wants it, and whether that differs. Labels, annotations and taints that the
// template once had and has no more are taken off; what others put on the Node stays.
func withTemplate(machine *machinev1alpha1.Machine, before *corev1.Node) (*corev1.Node, bool, error) {
	template := machine.Spec.NodeTemplate
	node := before.DeepCopy()
	var last machinev1alpha1.NodeTemplateSpec
	if text := node.Annotations[machinev1alpha1.LastAppliedALTAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &last); err != nil {
			last = machinev1alpha1.NodeTemplateSpec{} // somebody else wrote it, so nothing is known of ours; it is written anew
		}
	}
	now := machinev1alpha1.NodeTemplateSpec{}
	now.ObjectMeta.Labels, now.ObjectMeta.Annotations, now.Spec.Taints = template.ObjectMeta.Labels, template.ObjectMeta.Annotations, template.Spec.Taints
	text, err := json.Marshal(now)
	if err != nil {
		return nil, false, err
	}
	node.Labels = merge(node.Labels, last.ObjectMeta.Labels, now.ObjectMeta.Labels)
	node.Annotations = merge(node.Annotations, last.ObjectMeta.Annotations, now.ObjectMeta.Annotations)
	node.Spec.Taints = mergeTaints(node.Spec.Taints, last.Spec.Taints, now.Spec.Taints)
	node.Labels[machinev1alpha1.MachineLabelKey] = machine.Name
	delete(node.Annotations, machinev1alpha1.NotManagedByMCM)
	node.Annotations[machinev1alpha1.LastAppliedALTAnnotation] = string(text)
	if node.DeletionTimestamp == nil {
		controllerutil.AddFinalizer(node, machinev1alpha1.NodeFinalizerName)
	}
	return node, !apiequality.Semantic.DeepEqual(before, node), nil
}

// merge takes off what was there last and is not wanted any more, and puts on what is.
func merge(have, last, want map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range have {
		_, ours := last[key]
		if _, wanted := want[key]; !ours || wanted {
			out[key] = value
		}
	}
	maps.Copy(out, want)
	return out
}

func mergeTaints(have, last, want []corev1.Taint) []corev1.Taint {
	contains := func(taints []corev1.Taint, t corev1.Taint) bool {
		return slices.ContainsFunc(taints, func(other corev1.Taint) bool { return other.MatchTaint(&t) })
	}
	var out []corev1.Taint
	for _, taint := range have {
		if i := slices.IndexFunc(want, func(other corev1.Taint) bool { return other.MatchTaint(&taint) }); i >= 0 {
			// When it was put on is the Node's own.
			wanted := want[i]
			wanted.TimeAdded = taint.TimeAdded
			out = append(out, wanted)
		} else if !contains(last, taint) {
			out = append(out, taint)
		}
	}
	for _, taint := range want {
		if !contains(out, taint) {
			out = append(out, taint)
		}
	}
	return out
}
