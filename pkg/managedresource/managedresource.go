// Package managedresource packs objects for another cluster into a ManagedResource, which gardener-resource-manager applies there.
package managedresource

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// SecretNamePrefix begins the names of the Secrets of Objects.
	SecretNamePrefix = "managedresource-"
	// separator is the line before each object.
	separator = "---\n"
)

// Values describe a ManagedResource.
type Values struct {
	// Namespace and Name are those of the ManagedResource.
	Namespace, Name string
	// Class is that of the gardener-resource-manager that applies it. Empty means the one for the shoot, "seed" the one for the seed.
	Class string
	// Labels are on the ManagedResource. Those of the shoot's care say which condition its health counts for.
	Labels map[string]string
	// InjectLabels are added to all objects.
	InjectLabels map[string]string
	// KeepObjects keeps the objects when the ManagedResource is deleted.
	KeepObjects bool
}

// Objects renders the ManagedResource and the Secret with the manifests. The scheme has to have the kinds of the objects; the same objects
// give the same bytes, in any order.
func Objects(scheme *runtime.Scheme, v Values, objects ...client.Object) ([]client.Object, error) {
	data, err := pack(scheme, objects)
	if err != nil {
		return nil, fmt.Errorf("ManagedResource %s/%s: %w", v.Namespace, v.Name, err)
	}
	secret := immutable.Secret(v.Namespace, SecretNamePrefix+v.Name, map[string][]byte{resourcesv1alpha1.CompressedDataKey: data})
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, Labels: v.Labels},
		Spec: resourcesv1alpha1.ManagedResourceSpec{
			SecretRefs: []corev1.LocalObjectReference{{Name: secret.Name}}, InjectLabels: v.InjectLabels,
		},
	}
	if v.Class != "" {
		mr.Spec.Class = &v.Class
	}
	if v.KeepObjects {
		mr.Spec.KeepObjects = &v.KeepObjects
	}
	if err := references.Inject(mr, nil); err != nil {
		return nil, err
	}
	return []client.Object{secret, mr}, nil
}

// pack returns the objects, compressed. They are encoded as JSON, which is YAML too: YAML encoders do not sort keys with numbers reliably.
func pack(scheme *runtime.Scheme, objects []client.Object) ([]byte, error) {
	type manifest struct{ key, text string }
	manifests := make([]manifest, 0, len(objects))
	for _, object := range objects {
		u, err := kube.Manifest(scheme, object)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(u.Object)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, manifest{u.GroupVersionKind().String() + " " + client.ObjectKeyFromObject(object).String(), string(text)})
	}
	slices.SortFunc(manifests, func(a, b manifest) int { return cmp.Compare(a.key, b.key) })
	out := &bytes.Buffer{}
	w := brotli.NewWriterLevel(out, brotli.DefaultCompression)
	for _, m := range manifests {
		if _, err := fmt.Fprintf(w, "%s%s\n", separator, m.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// Unpack returns the objects in the Secret of a ManagedResource that Objects has rendered.
func Unpack(secret *corev1.Secret) ([]*unstructured.Unstructured, error) {
	text, err := io.ReadAll(brotli.NewReader(bytes.NewReader(secret.Data[resourcesv1alpha1.CompressedDataKey])))
	if err != nil {
		return nil, fmt.Errorf("unpack Secret %q: %w", secret.Name, err)
	}
	var objects []*unstructured.Unstructured
	for line := range strings.Lines(string(text)) {
		if line == separator {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(line)); err != nil {
			return nil, fmt.Errorf("unpack Secret %q: %w", secret.Name, err)
		}
		objects = append(objects, u)
	}
	return objects, nil
}
