package local

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/test/golden"
)

func request(t *testing.T) driver.Request {
	t.Helper()
	raw, err := json.Marshal(localv1alpha1.MachineProviderSpec{
		Image: "registry.example/machine:v1", Namespace: "infra-shoot--dev--crazy", Zone: "1",
		Registries: []localv1alpha1.MachineRegistry{
			{Host: "registry.k8s.io", Mirrors: []string{"http://172.30.0.1:5000/v2/registry.k8s.io", "https://mirror.example"}},
			{Host: "registry.local:5000", Server: "http://172.30.0.1:5000"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return driver.Request{
		ClassRequest: driver.ClassRequest{Class: &machinev1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy", Name: "pool-z1-12345"}, ProviderSpec: runtime.RawExtension{Raw: raw},
			NodeTemplate: &machinev1alpha1.NodeTemplate{Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("128Mi"), "gpu": resource.MustParse("0"),
			}},
		}},
		Machine:  &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--crazy", Name: "pool-z1-12345-abcde", UID: "1234"}},
		UserData: []byte("#!/bin/sh\n"),
	}
}

func TestObjects(t *testing.T) {
	r := request(t)
	spec, err := decode(r.Class)
	if err != nil {
		t.Fatal(err)
	}
	secret, pod := objects(r, spec, "infra-shoot--dev--crazy")
	golden.Objects(t, "machine.yaml", []client.Object{secret, pod})
}

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"valid":              {`{"apiVersion":"x/v1","kind":"Y","image":"a"}`, ""},
		"a bad namespace":    {`{"image":"a","namespace":"A/b"}`, `MachineClass c: providerSpec.namespace: Invalid value: "A/b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		"a bad zone":         {`{"image":"a","zone":"a/b"}`, `MachineClass c: providerSpec.zone: Invalid value: "a/b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		"no image":           {`{}`, `MachineClass c: providerSpec.image: Required value: name the machine image`},
		"nothing":            {``, `MachineClass c: decode providerSpec: EOF`},
		"an unknown field":   {`{"image":"a","images":"b"}`, `MachineClass c: decode providerSpec: json: unknown field "images"`},
		"a host with a path": {`{"image":"a","registries":[{"host":"../x"}]}`, `MachineClass c: providerSpec.registries[0].host: Invalid value: "../x": must be a host name, or one with a port`},
		"a bad port":         {`{"image":"a","registries":[{"host":"x:y"}]}`, `MachineClass c: providerSpec.registries[0].host: Invalid value: "x:y": must be a host name, or one with a port`},
		"twice":              {`{"image":"a","registries":[{"host":"x"},{"host":"x"}]}`, `MachineClass c: providerSpec.registries[1].host: Duplicate value: "x"`},
		"a bad mirror": {
			`{"image":"a","registries":[{"host":"x","server":"ftp://x","mirrors":["http://u:p@x"]}]}`,
			`MachineClass c: [providerSpec.registries[0].server: Invalid value: "ftp://x": must be a URL with http or https, providerSpec.registries[0].mirrors[0]: Invalid value: "http://u:p@x": must be a URL with http or https]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			class := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, ProviderSpec: runtime.RawExtension{Raw: []byte(tc.spec)}}
			_, err := decode(class)
			got := ""
			if err != nil {
				got = err.Error()
				if driver.CodeOf(err) != driver.InvalidArgument {
					t.Errorf("code is %s", driver.CodeOf(err))
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A machine is created, found, lost when its pod ends, and deleted with its Secret. Each call may be repeated.
func TestDriver(t *testing.T) {
	c := fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).Build()
	d := New(nil, c, nil, "shoot--dev--crazy")
	r := request(t)
	code := func(err error, want driver.Code) {
		t.Helper()
		if got := driver.CodeOf(err); got != want {
			t.Errorf("code is %q (%v), want %q", got, err, want)
		}
	}
	list := func() map[string]string {
		machines, err := d.ListMachines(t.Context(), r.ClassRequest)
		if err != nil {
			t.Fatal(err)
		}
		return machines
	}
	// lost reads the status of a machine that does not exist, but whose Node may.
	lost := func() error {
		t.Helper()
		status, err := d.GetMachineStatus(t.Context(), r)
		code(err, driver.NotFound)
		if diff := cmp.Diff(driver.Status{NodeName: r.Machine.Name}, status); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		return err
	}
	_ = lost() // before it is created
	for range 2 {
		created, err := d.CreateMachine(t.Context(), r)
		code(err, "")
		found, err := d.GetMachineStatus(t.Context(), r)
		code(err, "")
		if diff := cmp.Diff(created, found); diff != "" || found.NodeName != r.Machine.Name || found.ProviderID != "local:///infra-shoot--dev--crazy/"+r.Machine.Name {
			t.Errorf("created and found (-created +found):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"local:///infra-shoot--dev--crazy/pool-z1-12345-abcde": r.Machine.Name}, list()); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}

	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "infra-shoot--dev--crazy", Name: r.Machine.Name}, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Message: "evicted"}
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	err := lost()
	if err == nil || !strings.HasSuffix(err.Error(), "has ended: evicted") {
		t.Errorf("error is %v", err)
	}
	// Another machine of the same name has to wait until the pod has ended.
	_, err = d.CreateMachine(t.Context(), r)
	code(err, driver.Aborted)
	_, err = d.CreateMachine(t.Context(), r)
	code(err, "")

	for range 2 {
		code(d.DeleteMachine(t.Context(), r), "")
	}
	if left := list(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	secrets := &corev1.SecretList{}
	if err := c.List(context.Background(), secrets); err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d Secrets are left (%v)", len(secrets.Items), err)
	}
}

// Codes that ask the shoot owner for a change are only for errors that a shoot owner can fix.
func TestCodes(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want driver.Code
	}{
		"the permission is missing": {apierrors.NewForbidden(pods, "m", nil), driver.FailedPrecondition},
		"it is not a pod":           {apierrors.NewBadRequest("x"), driver.InvalidArgument},
		"it does not exist":         {apierrors.NewNotFound(pods, "m"), driver.NotFound},
		"it has changed":            {apierrors.NewConflict(pods, "m", nil), driver.Aborted},
		"it is not available":       {apierrors.NewServiceUnavailable("x"), driver.Unavailable},
	} {
		if got := driver.CodeOf(driver.APIErrorf(tc.err, "create the pod")); got != tc.want {
			t.Errorf("%s: the code is %q, want %q", name, got, tc.want)
		}
	}
}

// Machines that a version before 1.150 has created are in the namespace of the control plane, also if others are in another cluster by now.
func TestMachinesOfFormerVersions(t *testing.T) {
	r := request(t)
	former := r
	former.Machine = r.Machine.DeepCopy()
	former.Machine.Spec.ProviderID = "local:///shoot--dev--crazy/" + r.Machine.Name
	formerClass := r
	formerClass.Class = r.Class.DeepCopy()
	formerClass.Class.ProviderSpec.Raw = []byte(`{"image":"x"}`)
	for name, tc := range map[string]struct {
		request     driver.Request
		inSeed      bool
		inNamespace string
	}{
		"a machine":                              {r, false, "infra-shoot--dev--crazy"},
		"one of a former version":                {former, true, "shoot--dev--crazy"},
		"one that a former version has begun":    {formerClass, true, "shoot--dev--crazy"},
		"one of a class that is not valid today": {driver.Request{ClassRequest: driver.ClassRequest{Class: &machinev1alpha1.MachineClass{}}, Machine: former.Machine}, true, "shoot--dev--crazy"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func() client.Object {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tc.inNamespace, Name: r.Machine.Name}}
			}
			seed, infrastructure := fake.NewClientBuilder().Build(), fake.NewClientBuilder().Build()
			in := infrastructure
			if tc.inSeed {
				in = seed
			}
			if err := in.Create(t.Context(), pod()); err != nil {
				t.Fatal(err)
			}
			d := New(seed, infrastructure, nil, "shoot--dev--crazy")
			if _, err := d.GetMachineStatus(t.Context(), tc.request); err != nil {
				t.Error(err)
			}
			if err := d.DeleteMachine(t.Context(), tc.request); err != nil {
				t.Error(err)
			}
			if err := in.Get(t.Context(), client.ObjectKeyFromObject(pod()), &corev1.Pod{}); !apierrors.IsNotFound(err) {
				t.Errorf("the machine is left: %v", err)
			}
		})
	}
}

// The pods of machines are in another namespace than their Machines.
func TestChangesAreOfMachines(t *testing.T) {
	d, queue := New(nil, nil, nil, "shoot--dev--crazy"), workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "infra-shoot--dev--crazy", Name: "m"}}
	d.machines(&handler.EnqueueRequestForObject{}).Delete(t.Context(), event.DeleteEvent{Object: pod}, queue)
	got, _ := queue.Get()
	if want := (reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shoot--dev--crazy", Name: "m"}}); got != want {
		t.Errorf("reconciles %v, want %v", got, want)
	}
}
