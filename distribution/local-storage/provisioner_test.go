package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// nodes are the names of those that exist.
type nodes []string

func (n nodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	for _, existing := range n {
		if existing == name {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
}

func testProvisioner(t *testing.T) *provisioner {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{corev1.LabelHostname: "host-a"}}}
	p, err := newProvisioner(filepath.Join(t.TempDir(), "volumes"), node, nodes{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.base.Close() }) //nolint:errcheck // it was only read
	return p
}

func volumeOptions(change func(*controller.ProvisionOptions)) controller.ProvisionOptions {
	reclaim := corev1.PersistentVolumeReclaimDelete
	o := controller.ProvisionOptions{
		PVName:       "pvc-1",
		StorageClass: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}, ReclaimPolicy: &reclaim},
		PVC: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
	if change != nil {
		change(&o)
	}
	return o
}

func volumeOn(node, path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Annotations: map[string]string{ownNode: node}}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-" + node}}},
		}}}},
	}}
}

func TestShouldProvision(t *testing.T) {
	p := testProvisioner(t)
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"this node":         {map[string]string{selectedNode: "a"}, true},
		"another node":      {map[string]string{selectedNode: "b"}, false},
		"not scheduled yet": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			if got := p.ShouldProvision(t.Context(), claim); got != tc.want {
				t.Errorf("ShouldProvision() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProvisionThenDelete(t *testing.T) {
	p := testProvisioner(t)
	pv, state, err := p.Provision(t.Context(), volumeOptions(nil))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("Provision() = %v, %v", state, err)
	}
	dir := filepath.Join(p.dir, "pvc-1")
	mode := corev1.PersistentVolumeFilesystem
	want := volumeOn("a", dir)
	want.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	want.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	want.Spec.VolumeMode = &mode
	want.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if diff := cmp.Diff(want, pv); diff != "" {
		t.Errorf("Provision() (-want +got):\n%s", diff)
	}
	for path, want := range map[string]fs.FileMode{p.dir: fs.ModeDir | 0o700, dir: fs.ModeDir | 0o777} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}

	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Provision(t.Context(), volumeOptions(nil)); err != nil {
		t.Errorf("a second attempt fails: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Errorf("a second attempt touched the data: %v", err)
	}

	for range 2 { // the second finds nothing to do
		if err := p.Delete(t.Context(), pv); err != nil {
			t.Errorf("Delete() = %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory is still there: %v", err)
		}
	}
}

func TestProvisionRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*controller.ProvisionOptions)
		want   string
	}{
		"shared access": {
			func(o *controller.ProvisionOptions) {
				o.PVC.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			},
			"access mode ReadWriteMany is not possible",
		},
		"selector": {func(o *controller.ProvisionOptions) { o.PVC.Spec.Selector = &metav1.LabelSelector{} }, "remove spec.selector"},
		"parameters": {func(o *controller.ProvisionOptions) {
			o.StorageClass.Parameters = map[string]string{"x": "1", "a": "2"}
		}, "unknown parameters: a, x"},
		"name": {func(o *controller.ProvisionOptions) { o.PVName = "../etc" }, "cannot be the name of a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			p := testProvisioner(t)
			_, state, err := p.Provision(t.Context(), volumeOptions(tc.change))
			if err == nil || !strings.Contains(err.Error(), tc.want) || state != controller.ProvisioningFinished {
				t.Errorf("Provision() = %v, %v; want an error with %q", state, err, tc.want)
			}
			left, err := os.ReadDir(p.dir)
			if err != nil || len(left) > 0 {
				t.Errorf("something was made: %v, %v", left, err)
			}
		})
	}
}

func TestShouldDelete(t *testing.T) {
	p := testProvisioner(t)
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"this node":         {volumeOn("a", "/x"), true},
		"another node":      {volumeOn("b", "/x"), false},
		"node that is gone": {volumeOn("c", "/x"), true},
		"made by others":    {&corev1.PersistentVolume{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.ShouldDelete(t.Context(), tc.pv); got != tc.want {
				t.Errorf("ShouldDelete() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDeleteLeavesOthersAlone(t *testing.T) {
	p := testProvisioner(t)
	precious := filepath.Join(filepath.Dir(p.dir), "precious")
	if err := os.Mkdir(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, filepath.Join(p.dir, "pvc-link")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want string // part of the error
	}{
		"outside":        {volumeOn("a", precious), "is not a volume in"},
		"climbing out":   {volumeOn("a", p.dir+"/../precious"), "is not a volume in"},
		"all volumes":    {volumeOn("a", p.dir+"/"), "is not a volume in"},
		"dots":           {volumeOn("a", p.dir+"/.."), "is not a volume in"},
		"a link":         {volumeOn("a", p.dir+"/pvc-link"), ""},
		"a gone node":    {volumeOn("c", precious), ""},
		"made by others": {&corev1.PersistentVolume{}, "ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.Delete(t.Context(), tc.pv)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Delete() = %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(precious); err != nil {
				t.Errorf("removed what is not a volume: %v", err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		node string // NODE_NAME
		want options
		err  string
	}{
		"defaults":          {args: []string{"--node=a"}, want: options{node: "a", directory: "/var/lib/local-storage", name: "local-storage.gardener.cloud", grace: 5 * time.Minute}},
		"node from outside": {node: "b", want: options{node: "b", directory: "/var/lib/local-storage", name: "local-storage.gardener.cloud", grace: 5 * time.Minute}},
		"all":               {args: []string{"--node=a", "--directory=/x/", "--name=n", "--kubeconfig=k", "--grace=1m"}, want: options{"a", "/x", "n", "k", time.Minute}},
		"no node":           {err: "set --node or NODE_NAME"},
		"relative path":     {args: []string{"--node=a", "--directory=x"}, err: "--directory must be an absolute path"},
		"root directory":    {args: []string{"--node=a", "--directory=/"}, err: "--directory must be an absolute path"},
		"stray argument":    {args: []string{"--node=a", "x"}, err: `unexpected argument "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.args, tc.node, &strings.Builder{})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("parse() = %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("parse() (-want +got):\n%s", diff)
			}
		})
	}
}
