package addon

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden file anew")

func values() Values {
	v := Values{
		Images: map[string]string{},
		Pods:   netip.MustParsePrefix("10.1.0.0/16"), DNS: netip.MustParseAddr("10.2.0.10"), Pool: netip.MustParsePrefix("172.30.0.128/28"),
	}
	for _, product := range Products() {
		v.Images[product] = "registry.example/" + product + ":v1"
	}
	return v
}

func TestObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := apiregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(gvk)
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(data)
	}
	golden := filepath.Join("testdata", "objects.yaml")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("rendered objects; write them anew with: go test ./landscape/addon -update (-want +got):\n%s", diff)
	}
}

func TestObjectsNeedsImages(t *testing.T) {
	for _, product := range Products() {
		v := values()
		delete(v.Images, product)
		if _, err := Objects(v); err == nil {
			t.Errorf("without an image of %q there is no error", product)
		}
	}
}
