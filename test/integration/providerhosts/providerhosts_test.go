// Package providerhosts runs provider-hosts against real API servers: the suite of the extension contract, and machines on computers of the test.
package providerhosts

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	driverhosts "gardener.cloud/gardener/internal/machinecontroller/driver/hosts"
	"gardener.cloud/gardener/internal/provider/hosts"
	"gardener.cloud/gardener/internal/provider/hosts/hoststest"
	"gardener.cloud/gardener/pkg/extension/contract"
	"gardener.cloud/gardener/pkg/extension/options"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const (
	namespace = "shoot--dev--crazy"
	extension = "extension-provider-hosts"
	image     = "registry.example/gardener:v1"
)

// start runs provider-hosts with API servers, as the ServiceAccount of its chart, so that what its role lacks shows.
func start(t *testing.T) (client.WithWatch, *rest.Config) {
	t.Helper()
	c, config := install(t, extension, nil, namespace)
	env.AwaitServed[*hostsv1alpha1.Host](t, c)
	env.AwaitServed[*hostsv1alpha1.HostClaim](t, c)
	env.AwaitServed[*hostsv1alpha1.AddressPool](t, c)
	env.AwaitServed[*hostsv1alpha1.AddressClaim](t, c)
	create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudprovider"}})
	o := hosts.NewOptions()
	o.ExtensionClasses = []string{"shoot", "seed"}
	o.WebhookNamespace, o.WebhookMode, o.WebhookServerHost, o.WebhookServerPort = extension, "url", "127.0.0.1", ports.Free(t, 1)[0]
	o.WebhookURL = net.JoinHostPort(o.WebhookServerHost, strconv.Itoa(o.WebhookServerPort))
	run(t, config, extension, o)
	return c, config
}

// install starts API servers with namespaces, and creates what the chart has for one of them, with what gardenlet or gardener-operator adds to its values.
func install(t *testing.T, in string, gardener map[string]any, others ...string) (client.WithWatch, *rest.Config) {
	t.Helper()
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient())
	scheme, err := hosts.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, definitions := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){crds.Extensions, crds.Machine, crds.Resources, crds.VerticalPodAutoscaler} {
		all, err := definitions()
		if err != nil {
			t.Fatal(err)
		}
		if err := crds.Deploy(t.Context(), c, "test", all...); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(others, in) {
		create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	archive, err := charts.Archive(charts.ProviderHosts)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := helm.Render(archive, helm.Release{
		Name: hosts.Name, Namespace: in, Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"},
		Values: map[string]any{"image": image, "gardener": gardener},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rendered {
		create(t, c, object)
	}
	return c, e.Config
}

// run runs it as the ServiceAccount of the chart in a namespace.
func run(t *testing.T, config *rest.Config, in string, o *options.Options) {
	t.Helper()
	o.MetricsBindAddress, o.HealthBindAddress, o.LeaderElectionNamespace, o.HeartbeatNamespace = "0", "0", in, in
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + in + ":" + hosts.Name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + in, "system:authenticated"},
	}
	scheme, err := hosts.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := o.NewManager(config, scheme, logr.Discard(), func(o *manager.Options) {
		o.Controller.SkipNameValidation = new(true) // tests run it one after the other in a process
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.AddControllers(mgr, o, image); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// computer is a server with a Host.
func computer(t *testing.T, c client.Client, name, key, authorized string) hoststest.Server {
	t.Helper()
	s := hoststest.New(t, name)
	pinned, hostKey := hoststest.Key(t)
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hostsv1alpha1.HostSpec{
		Address: "127.0.0.1", Port: int32(s.InProcess(t, authorized, hostKey)), User: who.Username, HostKey: pinned,
		KeySecretRef: corev1.SecretReference{Namespace: extension, Name: key}, MachineType: "small", Zone: "a",
	}})
	return s
}

// awaitPhase waits until a host has a phase.
func awaitPhase(t *testing.T, c client.WithWatch, name string, phase hostsv1alpha1.HostPhase) *hostsv1alpha1.Host {
	t.Helper()
	return env.Await(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(h *hostsv1alpha1.Host) error {
		if h.Status.Phase != phase {
			return fmt.Errorf("its phase is %q, %s, conditions %v", h.Status.Phase, h.Status.Message, h.Status.Conditions)
		}
		return nil
	})
}

func TestProviderHosts(t *testing.T) {
	c, config := start(t)
	t.Run("machines", func(t *testing.T) { testMachines(t, c) })
	t.Run("load balancers", func(t *testing.T) { testLoadBalancers(t, c, config) })
	t.Run("contract", func(t *testing.T) { testContract(t, c) })
}

func testMachines(t *testing.T, c client.WithWatch) {
	step := env.Story(t)
	authorized, private := hoststest.Key(t)
	create(t, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: extension, Name: "key"}, Type: corev1.SecretTypeSSHAuth, Data: map[string][]byte{corev1.SSHAuthPrivateKey: private},
	})
	request := func(name string) driver.Request {
		return driver.Request{
			ClassRequest: driver.ClassRequest{Class: &machinev1alpha1.MachineClass{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "class"}, ProviderSpec: runtime.RawExtension{Raw: []byte(`{"machineType":"small","zone":"a"}`)},
			}},
			Machine: &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, UserData: []byte("echo " + name + "\n"),
		}
	}
	d := driverhosts.New(c, nil)
	claimed := func(name string) *hostsv1alpha1.HostClaim {
		return env.Named[*hostsv1alpha1.HostClaim](namespace, name)
	}

	step("a machine waits while there is no host")
	if _, err := d.CreateMachine(t.Context(), request("m1")); err == nil {
		t.Fatal("there is a machine")
	}
	env.Await(t, c, claimed("m1"), func(claim *hostsv1alpha1.HostClaim) error {
		if claim.Status.Message == "" {
			return fmt.Errorf("its status is %+v", claim.Status)
		}
		return nil
	})
	if _, err := d.CreateMachine(t.Context(), request("m1")); driver.CodeOf(err) != driver.ResourceExhausted {
		t.Errorf("the error is %v", err)
	}

	step("a host with a kubelet of its own is never handed out")
	used := hoststest.New(t, "used")
	used.BecomeNode(t)
	pinned, hostKey := hoststest.Key(t)
	create(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "used"}, Spec: hostsv1alpha1.HostSpec{
		Address: "127.0.0.1", Port: int32(used.InProcess(t, authorized, hostKey)), HostKey: pinned, MachineType: "small", Zone: "a",
		KeySecretRef: corev1.SecretReference{Namespace: extension, Name: "key"},
	}})
	if h := awaitPhase(t, c, "used", hostsv1alpha1.HostFailed); !strings.Contains(h.Status.Message, "kubelet.service is active") {
		t.Errorf("the message is %q", h.Status.Message)
	}

	step("a host whose user nodes manage is refused")
	wrong := &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}, Spec: hostsv1alpha1.HostSpec{Address: "127.0.0.1", User: "gardener", HostKey: pinned, MachineType: "small"}}
	if err := c.Create(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "nodes manage the user gardener") {
		t.Errorf("the error is %v", err)
	}

	step("the host gets the user data of one of two machines")
	server := computer(t, c, "host-1", "key", authorized)
	if _, err := d.CreateMachine(t.Context(), request("m2")); err == nil {
		t.Fatal("a claim is bound before it is reconciled")
	}
	h := env.Await(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "host-1"}}, func(h *hostsv1alpha1.Host) error {
		if h.Status.Claim == nil || !h.Status.Claim.Provisioned {
			return fmt.Errorf("its status is %+v", h.Status)
		}
		return nil
	})
	winner, loser := h.Status.Claim.Name, map[string]string{"m1": "m2", "m2": "m1"}[h.Status.Claim.Name]
	if got := server.Read("var/lib/gardener-host/user-data"); got != "echo "+winner+"\n" {
		t.Errorf("the user data is %q", got)
	}
	env.Await(t, c, claimed(winner), func(claim *hostsv1alpha1.HostClaim) error {
		if !claim.Status.Bound {
			return fmt.Errorf("its status is %+v", claim.Status)
		}
		return nil
	})
	status, err := d.CreateMachine(t.Context(), request(winner))
	if err != nil || status.ProviderID != "hosts:///host-1" || status.NodeName != "host-1" {
		t.Errorf("the machine is %+v (%v)", status, err)
	}
	if _, err := d.GetMachineStatus(t.Context(), request(loser)); driver.CodeOf(err) != driver.NotFound {
		t.Errorf("the other machine exists, too (%v)", err)
	}
	if all, err := d.ListMachines(t.Context(), request("").ClassRequest); err != nil || len(all) != 2 || all["hosts:///host-1"] != winner {
		t.Errorf("machines are %v (%v)", all, err)
	}

	step("a host that is in use is not deleted")
	if err := c.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(h), h); err != nil || h.Status.Phase != hostsv1alpha1.HostClaimed {
		t.Errorf("the host is %+v (%v)", h.Status, err)
	}

	step("the host is cleaned when its machine is deleted, and then deleted")
	server.BecomeNode(t)
	if err := d.DeleteMachine(t.Context(), request(winner)); driver.CodeOf(err) != driver.DeadlineExceeded {
		t.Errorf("the error is %v", err)
	}
	env.AwaitGone(t, c, claimed(winner))
	env.AwaitGone(t, c, h)
	if err := d.DeleteMachine(t.Context(), request(winner)); err != nil {
		t.Error(err)
	}
	if server.Read("var/lib/kubelet/pods/1/volume/data") != "" {
		t.Error("volumes are left")
	}

	step("a host that cannot be cleaned is failed, and the machine is deleted")
	dirty := computer(t, c, "host-2", "key", authorized)
	env.Await(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "host-2"}}, func(h *hostsv1alpha1.Host) error {
		if h.Status.Claim == nil || !h.Status.Claim.Provisioned {
			return fmt.Errorf("its status is %+v", h.Status)
		}
		return nil
	})
	dirty.BecomeNode(t)
	dirty.Write(t, "busy", "") // its mount stays
	if err := d.DeleteMachine(t.Context(), request(loser)); driver.CodeOf(err) != driver.DeadlineExceeded {
		t.Errorf("the error is %v", err)
	}
	env.AwaitGone(t, c, claimed(loser))
	if h := awaitPhase(t, c, "host-2", hostsv1alpha1.HostFailed); !strings.Contains(h.Status.Message, "cannot unmount /var/lib/kubelet/pods/1/volume") || h.Status.Claim != nil {
		t.Errorf("the host is %+v", h.Status)
	}

	step("an operator has it cleaned again")
	if err := os.Remove(filepath.Join(dirty.Root, "busy")); err != nil {
		t.Fatal(err)
	}
	env.Edit(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "host-2"}}, func(h *hostsv1alpha1.Host) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, "gardener.cloud/operation", hostsv1alpha1.OperationClean)
	})
	awaitPhase(t, c, "host-2", hostsv1alpha1.HostAvailable)

	step("a server with another key is not trusted")
	_, impostor := hoststest.Key(t)
	create(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "host-3"}, Spec: hostsv1alpha1.HostSpec{
		Address: "127.0.0.1", Port: int32(hoststest.New(t, "host-3").InProcess(t, authorized, impostor)), HostKey: pinned, MachineType: "small",
		KeySecretRef: corev1.SecretReference{Namespace: extension, Name: "key"},
	}})
	env.Await(t, c, &hostsv1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: "host-3"}}, func(h *hostsv1alpha1.Host) error {
		if len(h.Status.Conditions) != 1 || h.Status.Conditions[0].Reason != "HostKeyMismatch" || h.Status.Phase != "" {
			return fmt.Errorf("its status is %+v", h.Status)
		}
		return nil
	})
}

func testContract(t *testing.T, c client.WithWatch) {
	number := 0
	meta := func() metav1.ObjectMeta {
		number++
		return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("n%d", number)}
	}
	ofType := func(name string) extensionsv1alpha1.DefaultSpec { return extensionsv1alpha1.DefaultSpec{Type: name} }
	secret := corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"}
	raw := func(object any) runtime.RawExtension {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: content}
	}
	profile := builder.CloudProfile("hosts")
	profile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("2Gi")}}
	create(t, c,
		&extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{
			CloudProfile: raw(profile), Seed: new(raw(builder.Seed("hosts"))), Shoot: raw(builder.Shoot("crazy")),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "userdata"}, Data: map[string][]byte{"cloud_config": []byte("#!/bin/bash")}},
	)
	t.Run("Infrastructure", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.Infrastructure{ObjectMeta: meta(), Spec: extensionsv1alpha1.InfrastructureSpec{DefaultSpec: ofType("hosts"), Region: "r", SecretRef: secret}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.Infrastructure).Spec.Type = "aws" },
		})
	})
	t.Run("ControlPlane", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.ControlPlane{ObjectMeta: meta(), Spec: extensionsv1alpha1.ControlPlaneSpec{DefaultSpec: ofType("hosts"), Region: "r", SecretRef: secret}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.ControlPlane).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "extension-controlplane-seed"}, &resourcesv1alpha1.ManagedResource{}); err != nil {
					t.Error(err)
				}
			},
		})
	})
	t.Run("OperatingSystemConfig", func(t *testing.T) {
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: meta(), Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
					DefaultSpec: ofType("debian"), Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeProvision,
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) {
				o.(*extensionsv1alpha1.OperatingSystemConfig).Spec.Type = "gardenlinux"
			},
			Fulfilled: func(t *testing.T, o extensionsv1alpha1.Object) {
				ref := o.(*extensionsv1alpha1.OperatingSystemConfig).Status.CloudConfig.SecretRef
				script := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, script); err != nil || !strings.Contains(string(script.Data["cloud_config"]), "swapoff") {
					t.Errorf("user data %v: %v", ref, err)
				}
			},
		})
	})
	t.Run("DNSRecord", func(t *testing.T) {
		create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dns"}, Data: map[string][]byte{
			"Server": []byte(hoststest.NameServer(t, hoststest.Address(t))), "Zone": []byte("example.org"), "TSIGKeyName": []byte("test"), "TSIGSecret": []byte(hoststest.TSIG),
		}})
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := meta()
				return &extensionsv1alpha1.DNSRecord{ObjectMeta: m, Spec: extensionsv1alpha1.DNSRecordSpec{
					DefaultSpec: ofType("rfc2136"), SecretRef: corev1.SecretReference{Namespace: namespace, Name: "dns"}, Name: m.Name + ".example.org", RecordType: "A", Values: []string{"10.0.0.1"},
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.DNSRecord).Spec.Type = "aws-route53" },
		})
	})
	t.Run("backups", func(t *testing.T) {
		server := httptest.NewServer(&hoststest.Store{Objects: map[string][]string{}})
		t.Cleanup(server.Close)
		create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: extension, Name: "store"}, Data: map[string][]byte{
			"endpoint": []byte(server.URL), "accessKeyID": []byte("id"), "secretAccessKey": []byte("key"),
		}})
		store := corev1.SecretReference{Namespace: extension, Name: "store"}
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := meta()
				m.Namespace = ""
				return &extensionsv1alpha1.BackupBucket{ObjectMeta: m, Spec: extensionsv1alpha1.BackupBucketSpec{DefaultSpec: ofType("S3"), Region: "r", SecretRef: store}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.BackupBucket).Spec.Type = "aws" },
		})
		contract.Run(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				m := meta()
				m.Namespace, m.Name = "", namespace+"--"+m.Name
				return &extensionsv1alpha1.BackupEntry{ObjectMeta: m, Spec: extensionsv1alpha1.BackupEntrySpec{DefaultSpec: ofType("S3"), Region: "r", BucketName: "b", SecretRef: store}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.BackupEntry).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				access := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-backup"}, access); err != nil || string(access.Data["endpoint"]) != server.URL {
					t.Errorf("access: %v", err)
				}
			},
		})
	})
	t.Run("Worker", func(t *testing.T) {
		contract.RunWorker(t, contract.Suite{
			Client: c,
			New: func() extensionsv1alpha1.Object {
				return &extensionsv1alpha1.Worker{ObjectMeta: meta(), Spec: extensionsv1alpha1.WorkerSpec{
					DefaultSpec: ofType("hosts"), Region: "r", SecretRef: secret,
					Pools: []extensionsv1alpha1.WorkerPool{{
						Name: "pool", MachineType: "small", Minimum: 1, Maximum: 3, MaxSurge: intstr.FromInt32(0), MaxUnavailable: intstr.FromInt32(1), Zones: []string{"a", "b"},
						MachineImage: &extensionsv1alpha1.MachineImage{Name: "debian", Version: "12.0.0"}, ProviderConfig: new(raw(map[string]any{"hostSelector": map[string]string{"disk": "ssd"}})),
						UserDataSecretRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "userdata"}, Key: "cloud_config"},
					}},
				}}
			},
			Foreign: func(o extensionsv1alpha1.Object) { o.(*extensionsv1alpha1.Worker).Spec.Type = "aws" },
			Fulfilled: func(t *testing.T, _ extensionsv1alpha1.Object) {
				classes := &machinev1alpha1.MachineClassList{}
				if err := c.List(t.Context(), classes, client.InNamespace(namespace)); err != nil {
					t.Fatal(err)
				}
				var specs []string
				for _, class := range classes.Items {
					specs = append(specs, string(class.ProviderSpec.Raw))
				}
				want := []string{`{"hostSelector":{"disk":"ssd"},"machineType":"small","zone":"a"}`, `{"hostSelector":{"disk":"ssd"},"machineType":"small","zone":"b"}`}
				if slices.Sort(specs); !slices.Equal(specs, want) {
					t.Errorf("classes are %q, want %q", specs, want)
				}
			},
		})
	})
	t.Run("machine-controller-manager", func(t *testing.T) {
		contract.RunWebhook(t, contract.WebhookSuite{
			Client: c, Extension: "provider-hosts", Type: "hosts", Namespaces: "shoot--dev--webhook",
			New: func(in string) client.Object {
				objects, err := machinecontrollermanager.Objects(machinecontrollermanager.Values{Namespace: in, Image: image, Replicas: 1, GenericKubeconfig: "generic-token-kubeconfig"})
				if err != nil {
					t.Fatal(err)
				}
				at := slices.IndexFunc(objects, func(o client.Object) bool { _, ok := o.(*appsv1.Deployment); return ok })
				return objects[at]
			},
			Changed: func(t *testing.T, u *unstructured.Unstructured) {
				deployment := &appsv1.Deployment{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, deployment); err != nil {
					t.Fatal(err)
				}
				containers := deployment.Spec.Template.Spec.Containers
				if len(containers) != 2 || !slices.Equal(containers[1].Command, []string{"/usr/local/bin/gardener", "machine-controller-manager-provider-hosts"}) {
					t.Errorf("containers are %+v", containers)
				}
			},
		})
	})
	t.Run("nodes keep their SSH server", func(t *testing.T) {
		contract.RunWebhook(t, contract.WebhookSuite{
			Client: c, Extension: "provider-hosts", Type: "hosts", Namespaces: "shoot--dev--nodes",
			New: func(in string) client.Object {
				return &extensionsv1alpha1.OperatingSystemConfig{
					TypeMeta:   metav1.TypeMeta{APIVersion: extensionsv1alpha1.SchemeGroupVersion.String(), Kind: "OperatingSystemConfig"},
					ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "nodes", Labels: map[string]string{extensionsv1alpha1.LabelMutatedByControlPlaneWebhook: "true"}},
					Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
						DefaultSpec: ofType("other"), Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
						Units: []extensionsv1alpha1.Unit{{Name: "kubelet.service"}, {Name: "sshd-ensurer.service"}},
					},
				}
			},
			Changed: func(t *testing.T, u *unstructured.Unstructured) {
				if units, _, err := unstructured.NestedSlice(u.Object, "spec", "units"); err != nil || len(units) != 1 {
					t.Errorf("units are %v (%v)", units, err)
				}
			},
		})
	})
}
