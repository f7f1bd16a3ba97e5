// Package references records in annotations which ConfigMaps and Secrets an object refers to, so that the garbage collector of
// gardener-resource-manager does not delete them.
package references

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// Kinds that can be referred to, as they are in annotations.
const (
	KindConfigMap = "configmap"
	KindSecret    = "secret"
)

// hashLength is how many characters of the hash of the name are in a key.
const hashLength = 8

// AnnotationKey returns the annotation key of a reference. The annotation value is the name.
func AnnotationKey(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return constants.ReferencePrefix + kind + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// Parse returns the kind and name that an annotation refers to, and whether it is a reference at all.
func Parse(key, value string) (kind, name string, ok bool) {
	reference, ok := strings.CutPrefix(key, constants.ReferencePrefix)
	if !ok {
		return "", "", false
	}
	kind, _, ok = strings.Cut(reference, "-")
	return kind, value, ok && (kind == KindConfigMap || kind == KindSecret)
}

// Inject writes the references of a workload or a ManagedResource to its annotations, and to those of its templates, and removes old ones.
// More references, with the keys that AnnotationKey returns, are added to them. Other kinds are an error.
func Inject(object client.Object, more map[string]string) error {
	switch o := object.(type) {
	case *corev1.Pod:
		set(more, &o.Spec, &o.ObjectMeta)
	case *appsv1.Deployment:
		set(more, &o.Spec.Template.Spec, &o.ObjectMeta, &o.Spec.Template.ObjectMeta)
	case *appsv1.StatefulSet:
		set(more, &o.Spec.Template.Spec, &o.ObjectMeta, &o.Spec.Template.ObjectMeta)
	case *appsv1.DaemonSet:
		set(more, &o.Spec.Template.Spec, &o.ObjectMeta, &o.Spec.Template.ObjectMeta)
	case *batchv1.Job:
		set(more, &o.Spec.Template.Spec, &o.ObjectMeta, &o.Spec.Template.ObjectMeta)
	case *batchv1.CronJob:
		job := &o.Spec.JobTemplate
		set(more, &job.Spec.Template.Spec, &o.ObjectMeta, &job.ObjectMeta, &job.Spec.Template.ObjectMeta)
	case *resourcesv1alpha1.ManagedResource:
		found := maps.Clone(more)
		if found == nil {
			found = map[string]string{}
		}
		for _, ref := range o.Spec.SecretRefs {
			found[AnnotationKey(KindSecret, ref.Name)] = ref.Name
		}
		write(&o.ObjectMeta, found)
	default:
		return fmt.Errorf("%T has no references", object)
	}
	return nil
}

func set(more map[string]string, spec *corev1.PodSpec, metadata ...*metav1.ObjectMeta) {
	found := ofPod(spec)
	maps.Copy(found, more)
	for _, m := range metadata {
		write(m, found)
	}
}

func write(metadata *metav1.ObjectMeta, found map[string]string) {
	annotations := maps.Clone(metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.DeleteFunc(annotations, func(key, value string) bool {
		_, _, ok := Parse(key, value)
		return ok
	})
	maps.Copy(annotations, found)
	metadata.Annotations = annotations
}

// ofPod returns the annotations for the ConfigMaps and Secrets of volumes, environment variables and image pull secrets.
func ofPod(spec *corev1.PodSpec) map[string]string {
	found := map[string]string{}
	configMap := func(name string) { found[AnnotationKey(KindConfigMap, name)] = name }
	secret := func(name string) { found[AnnotationKey(KindSecret, name)] = name }
	for _, volume := range spec.Volumes {
		if source := volume.ConfigMap; source != nil {
			configMap(source.Name)
		}
		if source := volume.Secret; source != nil {
			secret(source.SecretName)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil {
				configMap(source.ConfigMap.Name)
			}
			if source.Secret != nil {
				secret(source.Secret.Name)
			}
		}
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, from := range container.EnvFrom {
			if from.ConfigMapRef != nil {
				configMap(from.ConfigMapRef.Name)
			}
			if from.SecretRef != nil {
				secret(from.SecretRef.Name)
			}
		}
		for _, env := range container.Env {
			if env.ValueFrom == nil {
				continue
			}
			if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
				configMap(ref.Name)
			}
			if ref := env.ValueFrom.SecretKeyRef; ref != nil {
				secret(ref.Name)
			}
		}
	}
	for _, ref := range spec.ImagePullSecrets {
		secret(ref.Name)
	}
	return found
}
