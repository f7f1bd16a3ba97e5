package managedseedset

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// placeholder stands for the name of a replica in domains.
const placeholder = "replica-name"

func replicaName(set string, number int) string { return set + "-" + strconv.Itoa(number) }

// metadata returns that of an object of a replica.
func metadata(set *seedmanagementv1alpha1.ManagedSeedSet, name string, template metav1.ObjectMeta) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(set, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeedSet"))
	return metav1.ObjectMeta{
		Namespace: set.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations, OwnerReferences: []metav1.OwnerReference{*owner},
	}
}

// shootOf returns the Shoot of a replica.
func shootOf(set *seedmanagementv1alpha1.ManagedSeedSet, name string) *corev1beta1.Shoot {
	template := set.Spec.ShootTemplate.DeepCopy()
	if dns := template.Spec.DNS; dns != nil && dns.Domain != nil {
		dns.Domain = new(strings.ReplaceAll(*dns.Domain, placeholder, name))
	}
	return &corev1beta1.Shoot{ObjectMeta: metadata(set, name, template.ObjectMeta), Spec: template.Spec}
}

// managedSeedOf returns the ManagedSeed of a replica.
func managedSeedOf(set *seedmanagementv1alpha1.ManagedSeedSet, name string) (*seedmanagementv1alpha1.ManagedSeed, error) {
	template := set.Spec.Template.DeepCopy()
	template.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: name}
	if raw := template.Spec.Gardenlet.Config; raw != nil && len(raw.Raw) > 0 {
		config := map[string]any{}
		if err := json.Unmarshal(raw.Raw, &config); err != nil {
			return nil, fmt.Errorf("spec.template.spec.gardenlet.config: %w", err)
		}
		path := []string{"seedConfig", "spec", "ingress", "domain"}
		if domain, found, err := unstructured.NestedString(config, path...); err == nil && found {
			if err := unstructured.SetNestedField(config, strings.ReplaceAll(domain, placeholder, name), path...); err != nil {
				return nil, fmt.Errorf("spec.template.spec.gardenlet.config: %w", err)
			}
		}
		data, err := json.Marshal(config)
		if err != nil {
			return nil, fmt.Errorf("spec.template.spec.gardenlet.config: %w", err)
		}
		template.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: data}
	}
	return &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metadata(set, name, template.ObjectMeta), Spec: template.Spec}, nil
}
