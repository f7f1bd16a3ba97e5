// Package immutable renders immutable ConfigMaps and Secrets with a checksum of their data in the name. A workload that mounts a new one
// has a new pod template, and the garbage collector deletes the old one when no object refers to it any more.
package immutable

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// sumLength is how many characters of the checksum are in a name.
const sumLength = 8

// ConfigMap renders a ConfigMap whose name ends in a checksum of its data.
func ConfigMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	raw := make(map[string][]byte, len(data))
	for key, value := range data {
		raw[key] = []byte(value)
	}
	return &corev1.ConfigMap{ObjectMeta: meta(namespace, name, raw), Data: data, Immutable: new(true)}
}

// Secret renders a Secret whose name ends in a checksum of its data.
func Secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(namespace, name, data), Type: corev1.SecretTypeOpaque, Data: data, Immutable: new(true)}
}

func meta(namespace, name string, data map[string][]byte) metav1.ObjectMeta {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(hash, "%s %d:", key, len(data[key]))
		hash.Write(data[key])
	}
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-" + hex.EncodeToString(hash.Sum(nil))[:sumLength],
		Labels: map[string]string{resourcesv1alpha1.GarbageCollectable: "true"},
	}
}
