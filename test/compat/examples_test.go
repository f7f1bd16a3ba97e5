package compat

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// TestExamplesDecodeStrictly reads the example manifests and the corpus' base objects of our groups: no unknown and no
// repeated field.
func TestExamplesDecodeStrictly(t *testing.T) {
	facts := factsDir(t)
	scheme := runtime.NewScheme()
	known := map[string]bool{}
	for _, g := range groups {
		if err := g.addToScheme(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for gvk := range scheme.AllKnownTypes() {
		known[gvk.GroupVersion().String()+"/"+gvk.Kind] = true
	}
	serializer := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme,
		jsonserializer.SerializerOptions{Yaml: true, Strict: true})

	// The YAML reader of the corpus reads an unquoted y as a string, this one as a boolean, as kubectl does.
	except := map[string]bool{
		"corpus/bases/15-controllerregistration-secondary.yaml": true,
		// It says controllers.managedResources; the field is managedResource. See TestResourceManagerExample.
		"examples/resource-manager/10-componentconfig.yaml": true,
	}

	var decoded, foreign int
	for _, dir := range []string{"examples", "corpus/bases"} {
		root := filepath.Join(facts, filepath.FromSlash(dir))
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(facts, path)
			if except[filepath.ToSlash(rel)] {
				return nil
			}
			docs := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
			buf := make([]byte, len(data)+1)
			for i := 0; ; i++ {
				n, err := docs.Read(buf)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("%s: %v", rel, err)
					break
				}
				doc := bytes.Clone(buf[:n])
				gvk, err := jsonserializer.DefaultMetaFactory.Interpret(toJSON(t, doc))
				if err != nil || !known[gvk.GroupVersion().String()+"/"+gvk.Kind] {
					foreign++
					continue
				}
				if _, _, err := serializer.Decode(doc, nil, nil); err != nil {
					t.Errorf("%s, document %d: %v", rel, i+1, err)
					continue
				}
				decoded++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d objects decoded strictly, %d of other groups left out", decoded, foreign)
}

func toJSON(t *testing.T, doc []byte) []byte {
	t.Helper()
	out, err := utilyaml.ToJSON(doc)
	if err != nil {
		t.Fatalf("%v in %s", err, strings.SplitN(string(doc), "\n", 2)[0])
	}
	return out
}
