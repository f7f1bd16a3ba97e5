package managedresource

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// maxManifestBytes is the maximum size of the decompressed manifests of one key: more than etcd allows, and little enough that a
// decompression bomb does no harm.
const maxManifestBytes = 64 << 20

// checksum returns a checksum of the data of Secrets, which does not depend on their order.
func checksum(secrets []*corev1.Secret) string {
	hash := sha256.New()
	for _, secret := range slices.SortedFunc(slices.Values(secrets), func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) }) {
		for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
			fmt.Fprintf(hash, "%s/%s %d:", secret.Name, key, len(secret.Data[key]))
			hash.Write(secret.Data[key])
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// decode returns the objects in the Secrets, in the order of Secrets, keys and manifests. The errors name Secret, key and
// the manifest's number; they never show content.
func decode(secrets []*corev1.Secret) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var errs []error
	for _, secret := range secrets {
		for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
			decoded, err := decodeKey(key, secret.Data[key])
			if err != nil {
				errs = append(errs, fmt.Errorf("secret %q, key %q: %w", secret.Name, key, err))
			}
			objects = append(objects, decoded...)
		}
	}
	return objects, errors.Join(errs...)
}

func decodeKey(key string, data []byte) ([]*unstructured.Unstructured, error) {
	var reader io.Reader = bytes.NewReader(data)
	if strings.HasSuffix(key, resourcesv1alpha1.BrotliCompressionSuffix) {
		reader = &limitedReader{reader: brotli.NewReader(reader), left: maxManifestBytes}
	}
	var objects []*unstructured.Unstructured
	var errs []error
	decoder := yaml.NewYAMLOrJSONDecoder(reader, 4096)
	for i := 1; ; i++ {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			// The error of the decoder may quote the manifest, which may be secret.
			errs = append(errs, fmt.Errorf("manifest %d is not valid YAML or JSON", i))
			if !errors.As(err, new(yaml.YAMLSyntaxError)) {
				break // the decoder cannot continue
			}
			continue
		}
		if raw.Raw == nil || bytes.Equal(raw.Raw, []byte("null")) {
			continue // a comment, or nothing between two separators
		}
		content := map[string]any{}
		if err := json.Unmarshal(raw.Raw, &content); err != nil { // keeps integers
			errs = append(errs, fmt.Errorf("manifest %d is not an object", i))
			continue
		}
		object := &unstructured.Unstructured{Object: content}
		if err := usable(object); err != nil {
			errs = append(errs, fmt.Errorf("manifest %d: %w", i, err))
			continue
		}
		objects = append(objects, object)
	}
	return objects, errors.Join(errs...)
}

// usable validates the fields that every object needs.
func usable(object *unstructured.Unstructured) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if value, ok := object.Object[field].(string); !ok || value == "" {
			return fmt.Errorf("%s is missing", field)
		}
	}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return fmt.Errorf("apiVersion: %w", err)
	}
	if object.IsList() {
		return errors.New("lists are not supported; write the objects one by one")
	}
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata is missing")
	}
	if name, ok := metadata["name"].(string); !ok || name == "" {
		return errors.New("metadata.name is missing")
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(metadata, field); err != nil {
			return fmt.Errorf("metadata.%s must have strings as values", field)
		}
	}
	return nil
}

// limitedReader fails if there is more to read than its limit, where io.LimitReader would report the end.
type limitedReader struct {
	reader io.Reader
	left   int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.reader.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, fmt.Errorf("more than %d bytes when decompressed", maxManifestBytes)
	}
	return n, err
}
