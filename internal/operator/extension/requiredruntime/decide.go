package requiredruntime

import (
	"slices"
	"strings"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/extension"
)

// need is a kind and type that the garden needs an extension for.
type need struct{ kind, typ string }

func (n need) String() string { return n.kind + "/" + n.typ }

// responsible is whether an Extension is responsible for a kind and type. Upper and lower case of the type are the same, as in the Garden.
func responsible(e *operatorv1alpha1.Extension, n need) bool {
	return slices.ContainsFunc(e.Spec.Resources, func(r corev1beta1.ControllerResource) bool {
		return r.Kind == n.kind && strings.EqualFold(r.Type, n.typ)
	})
}

// ofSpec returns what a Garden needs, given all Extensions. One that is being deleted needs nothing but the objects that still exist.
func ofSpec(garden *operatorv1alpha1.Garden, extensions []operatorv1alpha1.Extension) []need {
	if garden == nil || garden.DeletionTimestamp != nil {
		return nil
	}
	var needs []need
	if etcd := garden.Spec.VirtualCluster.ETCD; etcd != nil && etcd.Main != nil && etcd.Main.Backup != nil {
		provider := etcd.Main.Backup.Provider
		needs = append(needs, need{kindBackupBucket, provider}, need{kindBackupEntry, provider})
	}
	if dns := garden.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			needs = append(needs, need{kindDNSRecord, provider.Type})
		}
	}
	for _, wanted := range extension.Wanted(garden, extensions) {
		needs = append(needs, need{extension.KindExtension, wanted.Type})
	}
	return needs
}

// decide returns the condition of an Extension, given what the spec of the Garden needs and which objects exist.
func decide(e *operatorv1alpha1.Extension, spec, objects []need) corev1beta1.Condition {
	of := func(needs []need) string {
		var texts []string
		for _, n := range needs {
			if responsible(e, n) {
				texts = append(texts, n.String())
			}
		}
		slices.Sort(texts)
		return strings.Join(slices.Compact(texts), ", ")
	}
	condition := corev1beta1.Condition{
		Type: operatorv1alpha1.ExtensionRequiredRuntime, Status: corev1beta1.ConditionTrue, Reason: "ExtensionRequired",
	}
	switch bySpec, byObjects := of(spec), of(objects); {
	case bySpec != "":
		condition.Message = "The Garden requires the extension: " + bySpec
	case byObjects != "":
		condition.Message = "There are objects of class garden that the extension is responsible for: " + byObjects
	default:
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "ExtensionNotRequired"
		condition.Message = "Neither the Garden nor an object of class garden requires the extension."
	}
	return condition
}
