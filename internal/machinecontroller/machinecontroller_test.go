package machinecontroller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// infrastructure is a driver whose machines are entries in a map.
type infrastructure struct {
	mu       sync.Mutex
	machines map[string]driver.Request // by provider ID
	most     int                       // machines at a time
	// joins is called for a new machine, to create its Node. Nil means that machines do not join.
	joins func(name string)
	// afterCreation and afterDeletion may replace the result of a creation or a deletion by an error.
	afterCreation, afterDeletion func(context.Context) error
}

func id(name string) string { return "fake:///" + name }

func (i *infrastructure) status(name string) driver.Status {
	return driver.Status{ProviderID: id(name), NodeName: name}
}

func (i *infrastructure) CreateMachine(ctx context.Context, request driver.Request) (driver.Status, error) {
	name := request.Machine.Name
	i.mu.Lock()
	if _, exists := i.machines[id(name)]; exists {
		i.mu.Unlock()
		return driver.Status{}, driver.Errorf(driver.AlreadyExists, "machine %s was made before", name)
	}
	i.machines[id(name)] = request
	i.most = max(i.most, len(i.machines))
	joins, after := i.joins, i.afterCreation
	i.mu.Unlock()
	if after != nil {
		if err := after(ctx); err != nil {
			return driver.Status{}, err
		}
	}
	if joins != nil {
		joins(name)
	}
	return i.status(name), nil
}

func (i *infrastructure) GetMachineStatus(_ context.Context, request driver.Request) (driver.Status, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.machines[id(request.Machine.Name)]; !ok {
		return driver.Status{}, driver.Errorf(driver.NotFound, "no machine %s", request.Machine.Name)
	}
	return i.status(request.Machine.Name), nil
}

func (i *infrastructure) InitializeMachine(context.Context, driver.Request) (driver.Status, error) {
	return driver.Status{}, driver.Errorf(driver.Unimplemented, "nothing to initialize")
}

func (i *infrastructure) DeleteMachine(ctx context.Context, request driver.Request) error {
	i.mu.Lock()
	delete(i.machines, id(request.Machine.Name))
	after := i.afterDeletion
	i.mu.Unlock()
	if after != nil {
		return after(ctx)
	}
	return nil
}

func (i *infrastructure) ListMachines(context.Context, driver.ClassRequest) (map[string]string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := map[string]string{}
	for id, request := range i.machines {
		out[id] = request.Machine.Name
	}
	return out, nil
}

func (i *infrastructure) names() []string {
	machines, _ := i.ListMachines(context.Background(), driver.ClassRequest{})
	return slices.Sorted(maps.Values(machines))
}

// userData is the user data that a machine was created with.
func (i *infrastructure) userData(name string) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.machines[id(name)].UserData
}

// notifying is an infrastructure that notifies of changes.
type notifying struct {
	*infrastructure
	changes chan event.GenericEvent
}

func (n notifying) Changes(h handler.EventHandler) source.Source { return source.Channel(n.changes, h) }

// site is the control cluster and the target cluster in one.
type site struct {
	client.WithWatch
	kubeconfig string
}

// scenario is a namespace with an infrastructure.
type scenario struct {
	*site
	*infrastructure
	namespace string
	// changes are the notifications of the infrastructure. If it is nil, there are none.
	changes chan event.GenericEvent
}

func TestMachineControllerManager(t *testing.T) {
	e := env.Start(t, env.KubeAPIServerFlags("--allow-privileged=true")) // local machines are such pods
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	site := &site{WithWatch: c, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := e.WriteKubeconfig(site.kubeconfig); err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Machine()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, *scenario){
		"life": testLife, "unhealthy": testUnhealthy, "lost": testLost, "rolling": testRolling, "priority": testPriority, "budget": testBudget,
		"restart": testRestart, "apart": testApart, "failure": testFailure, "preserve": testPreserve, "in-place": testInPlace, "manual": testManual, "orphans": testOrphans,
		"local": testLocal, "local-elsewhere": testLocalElsewhere, "hosts": testHosts,
	} {
		t.Run(name, func(t *testing.T) {
			s := &scenario{site: site, infrastructure: &infrastructure{machines: map[string]driver.Request{}}, namespace: "shoot-" + name}
			s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
			s.allow(t)
			for _, class := range []string{"old", "new"} {
				s.create(t, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: class}, Data: map[string][]byte{"userData": []byte("#!/bin/sh\njoin <<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>>\n")},
				}, &machinev1alpha1.MachineClass{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: class}, Provider: "fake", ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
					SecretRef: &corev1.SecretReference{Namespace: s.namespace, Name: class},
				})
			}
			test(t, s)
		})
	}
}

// allow applies the RBAC objects of the component, in the seed and in the shoot. Those in the shoot are applied once.
func (s *scenario) allow(t *testing.T) {
	t.Helper()
	objects, err := machinecontrollermanager.Objects(machinecontrollermanager.Values{Namespace: s.namespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range append(objects, machinecontrollermanager.TargetObjects()...) {
		switch object.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
			if err := s.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
}

// kubeconfigAs returns a kubeconfig of a service account.
func (c *site) kubeconfigAs(t *testing.T, namespace string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + namespace + ":" + machinecontrollermanager.Name
	}
	file := filepath.Join(t.TempDir(), namespace)
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// start runs both processes until the returned function is called.
func (s *scenario) start(t *testing.T) (stop func()) {
	t.Helper()
	generic, ofProvider := s.startGeneric(t), s.startProvider(t)
	return func() {
		ofProvider()
		generic()
	}
}

// startGeneric runs the generic process until the returned function is called.
func (s *scenario) startGeneric(t *testing.T) (stop func()) {
	t.Helper()
	o := NewOptions()
	s.configure(t, &o.Common)
	return launch(t, component(), o)
}

// startProvider runs the process of the provider until the returned function is called.
func (s *scenario) startProvider(t *testing.T, changes ...func(*ProviderOptions)) (stop func()) {
	t.Helper()
	o := NewProviderOptions()
	s.configure(t, &o.Common)
	for _, change := range changes {
		change(o)
	}
	return launch(t, provider{name: "machine-controller-manager-provider-fake", driver: "fake", new: func(context.Context, *process.Process, *ProviderOptions) (driver.Driver, error) {
		if s.changes != nil {
			return notifying{s.infrastructure, s.changes}, nil
		}
		return s.infrastructure, nil
	}}.component(), o)
}

func (s *scenario) configure(t *testing.T, o *Common) {
	t.Helper()
	o.ControlKubeconfig, o.TargetKubeconfig = s.kubeconfigAs(t, s.namespace), s.kubeconfigAs(t, metav1.NamespaceSystem)
	o.Namespace, o.BindAddress = s.namespace, "127.0.0.1"
	o.Port, o.ConcurrentSyncs = ports.Free(t, 1)[0], 5
}

func launch[T any](t *testing.T, c process.Component[T], o *T) (stop func()) {
	t.Helper()
	own := c.Options
	c.Options = func(o *T, m *manager.Options) {
		own(o, m)
		m.Controller.SkipNameValidation = new(true) // each scenario has processes of its own
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx, o, testr.New(t)) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("process: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (c *site) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// machines waits until a check of the scenario's machines succeeds.
func (s *scenario) machines(t *testing.T, check func([]*machinev1alpha1.Machine) error) []*machinev1alpha1.Machine {
	t.Helper()
	var result []*machinev1alpha1.Machine
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.Machine) error {
		slices.SortFunc(found, func(a, b *machinev1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
		if err := check(found); err != nil {
			return err
		}
		result = found
		return nil
	}, client.InNamespace(s.namespace))
	return result
}

// running waits for a number of running machines, and no others.
func (s *scenario) running(t *testing.T, number int) []*machinev1alpha1.Machine {
	t.Helper()
	return s.machines(t, func(found []*machinev1alpha1.Machine) error { return allRunning(found, number) })
}

func allRunning(found []*machinev1alpha1.Machine, number int) error {
	var phases []string
	good := len(found) == number
	for _, machine := range found {
		phases = append(phases, fmt.Sprintf("%s %s (%s)", machine.Name, machine.Status.CurrentStatus.Phase, machine.Status.LastOperation.Description))
		good = good && machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning && machine.DeletionTimestamp == nil
	}
	if !good {
		return fmt.Errorf("want %d running machines, there are: %s", number, strings.Join(phases, ", "))
	}
	return nil
}

// deploy creates a deployment of a number of machines.
func (s *scenario) deploy(t *testing.T, number int32) *machinev1alpha1.MachineDeployment {
	t.Helper()
	deployment := &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.namespace + "-z1"},
		Spec: machinev1alpha1.MachineDeploymentSpec{
			Replicas: number, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": s.namespace + "-z1"}},
			Strategy: machinev1alpha1.MachineDeploymentStrategy{
				Type: machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: machinev1alpha1.UpdateConfiguration{
					MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
				}},
			},
			Template: machinev1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": s.namespace + "-z1"}},
				Spec: machinev1alpha1.MachineSpec{
					Class: machinev1alpha1.ClassSpec{Kind: machinev1alpha1.MachineClassKind, Name: "old"},
					NodeTemplate: machinev1alpha1.NodeTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "z1"}},
						Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "mine", Value: "1", Effect: corev1.TaintEffectNoSchedule}}},
					},
				},
			},
		},
	}
	s.create(t, deployment)
	return deployment
}

// edit changes a deployment.
func (s *scenario) edit(t *testing.T, deployment *machinev1alpha1.MachineDeployment, change func(*machinev1alpha1.MachineDeployment)) {
	t.Helper()
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	before := deployment.DeepCopy()
	change(deployment)
	if err := s.Patch(t.Context(), deployment, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// join creates a Node, as the kubelet does.
func (s *scenario) join(t *testing.T) func(string) {
	return func(name string) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.Create(t.Context(), node); err != nil {
			t.Errorf("create Node: %v", err)
			return
		}
		s.ready(t, name, corev1.ConditionTrue)
	}
}

func (s *scenario) ready(t *testing.T, name string, status corev1.ConditionStatus) {
	node := &corev1.Node{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		t.Errorf("read Node: %v", err)
		return
	}
	before := node.DeepCopy()
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(), Reason: "Test",
	})
	if err := s.Status().Patch(t.Context(), node, client.StrategicMergeFrom(before)); err != nil {
		t.Errorf("patch Node: %v", err)
	}
}

// gone waits until a deployment, its sets and its machines are deleted.
func (s *scenario) gone(t *testing.T) {
	t.Helper()
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if len(found) > 0 {
			return fmt.Errorf("%d machines are left; the first one: %s", len(found), found[0].Status.LastOperation.Description)
		}
		return nil
	})
	env.AwaitList(t, s.site, env.None[*machinev1alpha1.MachineDeployment], client.InNamespace(s.namespace))
	if left := s.names(); len(left) > 0 {
		t.Errorf("the infrastructure still has %v", left)
	}
}

func testLife(t *testing.T, s *scenario) {
	step := env.Story(t)
	s.start(t)
	step("a machine is created")
	deployment := s.deploy(t, 1)
	machine := s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if len(found) != 1 || found[0].Status.CurrentStatus.Phase != machinev1alpha1.MachinePending {
			return fmt.Errorf("want a pending machine, got %d", len(found))
		}
		return nil
	})[0]
	if machine.Labels["node"] != "" {
		t.Error("the machine has a Node before it joined")
	}
	if machine.Spec.ProviderID != id(machine.Name) {
		t.Errorf("provider ID is %q", machine.Spec.ProviderID)
	}
	step("its user data let it join")
	// The user data has the name of the machine, and a token with which it can join.
	tokens := &corev1.SecretList{}
	if err := s.List(t.Context(), tokens, client.InNamespace(metav1.NamespaceSystem), client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)}); err != nil || len(tokens.Items) != 1 {
		t.Fatalf("there are %d bootstrap tokens (%v), want one", len(tokens.Items), err)
	}
	token := tokens.Items[0].Data
	want := fmt.Sprintf("#!/bin/sh\njoin %s %s.%s\n", machine.Name, token["token-id"], token["token-secret"])
	if got := s.userData(machine.Name); !bytes.Equal(got, []byte(want)) {
		t.Errorf("user data is %q, want %q", got, want)
	}

	step("it joins")
	s.join(t)(machine.Name)
	machine = s.running(t, 1)[0]
	if machine.Labels["node"] != machine.Name {
		t.Errorf("labels of the machine: %v", machine.Labels)
	}
	node := &corev1.Node{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: machine.Name}, node); err != nil {
		t.Fatal(err)
	}
	mine := func(taint corev1.Taint) bool { return taint.Key == "mine" }
	if node.Labels["pool"] != "z1" || node.Labels[machinev1alpha1.MachineLabelKey] != machine.Name || !slices.ContainsFunc(node.Spec.Taints, mine) ||
		!slices.Contains(node.Finalizers, machinev1alpha1.NodeFinalizerName) {
		t.Errorf("Node has labels %v, taints %v, finalizers %v", node.Labels, node.Spec.Taints, node.Finalizers)
	}
	env.AwaitList(t, s.site, func(found []*corev1.Secret) error {
		for _, secret := range found {
			if secret.Type == corev1.SecretTypeBootstrapToken {
				return fmt.Errorf("token %s is left", secret.Name)
			}
		}
		return nil
	}, client.InNamespace(metav1.NamespaceSystem))
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.MachineDeployment) error {
		if status := found[0].Status; status.AvailableReplicas != 1 || status.UpdatedReplicas != 1 || status.UnavailableReplicas != 0 {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	}, client.InNamespace(s.namespace))

	step("the node template changes, which needs no new machine")
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.NodeTemplate = machinev1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "z2"}}}
	})
	env.AwaitList(t, s.site, func(found []*corev1.Node) error {
		for _, node := range found {
			if node.Name == machine.Name && (node.Labels["pool"] != "z2" || slices.ContainsFunc(node.Spec.Taints, mine)) {
				return fmt.Errorf("labels are %v, taints %v", node.Labels, node.Spec.Taints)
			}
		}
		return nil
	})
	if now := s.running(t, 1)[0]; now.Name != machine.Name {
		t.Error("the machine was replaced")
	}

	step("its class gets a virtual capacity, and loses it")
	class := &machinev1alpha1.MachineClass{}
	for _, virtual := range []corev1.ResourceList{{"example.com/license": resource.MustParse("5")}, nil} {
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "old"}, class); err != nil {
			t.Fatal(err)
		}
		before := class.DeepCopy()
		class.NodeTemplate = &machinev1alpha1.NodeTemplate{
			InstanceType: "t", Region: "r", Zone: "z1", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, VirtualCapacity: virtual,
		}
		if err := s.Patch(t.Context(), class, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		env.AwaitList(t, s.site, func(found []*corev1.Node) error {
			for _, node := range found {
				got, want := node.Status.Capacity["example.com/license"], virtual["example.com/license"]
				_, listed := node.Annotations[machinev1alpha1.LastAppliedVirtualCapacityAnnotation]
				if node.Name == machine.Name && (got.Cmp(want) != 0 || listed != (virtual != nil)) {
					return fmt.Errorf("capacity is %v, annotations are %v", node.Status.Capacity, node.Annotations)
				}
			}
			return nil
		})
	}

	step("it is deleted with its deployment")
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "old"}, class); err != nil || len(class.Finalizers) == 0 {
		t.Errorf("class has finalizers %v (%v)", class.Finalizers, err)
	}
	if err := s.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	s.gone(t)
	if err := s.Get(t.Context(), client.ObjectKey{Name: machine.Name}, node); !apierrors.IsNotFound(err) {
		t.Errorf("Node: %v", err)
	}
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.MachineClass) error {
		for _, class := range found {
			if len(class.Finalizers) > 0 {
				return fmt.Errorf("class %s has finalizers %v", class.Name, class.Finalizers)
			}
		}
		return nil
	}, client.InNamespace(s.namespace))
}

func testUnhealthy(t *testing.T, s *scenario) {
	s.joins = s.join(t)
	s.startGeneric(t)
	s.startProvider(t, func(o *ProviderOptions) { o.HealthTimeout = 500 * time.Millisecond })
	s.deploy(t, 2)
	before := s.running(t, 2)
	s.ready(t, before[0].Name, corev1.ConditionUnknown)
	after := s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if len(found) > 0 && slices.ContainsFunc(found, func(m *machinev1alpha1.Machine) bool { return m.Name == before[0].Name }) {
			return fmt.Errorf("machine %s is left: %s", before[0].Name, found[0].Status.LastOperation.Description)
		}
		return allRunning(found, 2)
	})
	if !slices.ContainsFunc(after, func(m *machinev1alpha1.Machine) bool { return m.Name == before[1].Name }) {
		t.Errorf("the healthy machine %s was replaced", before[1].Name)
	}

	// One that does not exist at the infrastructure any more is replaced without draining.
	if err := s.DeleteMachine(t.Context(), driver.Request{Machine: after[0]}); err != nil {
		t.Fatal(err)
	}
	s.ready(t, after[0].Name, corev1.ConditionFalse)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if slices.ContainsFunc(found, func(m *machinev1alpha1.Machine) bool { return m.Name == after[0].Name }) {
			return fmt.Errorf("machine %s is left", after[0].Name)
		}
		return allRunning(found, 2)
	})
}

// testLost loses a machine whose Node stays Ready.
func testLost(t *testing.T, s *scenario) {
	s.joins, s.changes = s.join(t), make(chan event.GenericEvent)
	s.start(t)
	s.deploy(t, 1)
	before := s.running(t, 1)[0]
	if err := s.DeleteMachine(t.Context(), driver.Request{Machine: before}); err != nil {
		t.Fatal(err)
	}
	s.changes <- event.GenericEvent{Object: before}
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if err := allRunning(found, 1); err != nil {
			return err
		}
		if found[0].Name == before.Name {
			return fmt.Errorf("machine %s is left", before.Name)
		}
		return nil
	})
}

func testRolling(t *testing.T, s *scenario) {
	s.joins = s.join(t)
	s.start(t)
	deployment := s.deploy(t, 3)
	before := s.running(t, 3)
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "new" })
	least := 3
	after := s.machines(t, func(found []*machinev1alpha1.Machine) error {
		running := 0
		for _, machine := range found {
			if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning && machine.DeletionTimestamp == nil {
				running++
			}
		}
		least = min(least, running)
		for _, machine := range found {
			if machine.Spec.Class.Name != "new" {
				return fmt.Errorf("machine %s has class %s", machine.Name, machine.Spec.Class.Name)
			}
		}
		return allRunning(found, 3)
	})
	if least < 3 {
		t.Errorf("at times there were %d running machines", least)
	}
	for _, machine := range before {
		if slices.ContainsFunc(after, func(m *machinev1alpha1.Machine) bool { return m.Name == machine.Name }) {
			t.Errorf("machine %s is left", machine.Name)
		}
	}
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.MachineDeployment) error {
		status := found[0].Status
		at := slices.IndexFunc(status.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool {
			return c.Type == machinev1alpha1.MachineDeploymentProgressing && c.Reason == "NewMachineSetAvailable"
		})
		if status.UpdatedReplicas != 3 || status.AvailableReplicas != 3 || status.Replicas != 3 || at < 0 {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	}, client.InNamespace(s.namespace))

	// And back.
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) { d.Spec.RollbackTo = &machinev1alpha1.RollbackConfig{} })
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		for _, machine := range found {
			if machine.Spec.Class.Name != "old" {
				return fmt.Errorf("machine %s has class %s", machine.Name, machine.Spec.Class.Name)
			}
		}
		return allRunning(found, 3)
	})
	sets := &machinev1alpha1.MachineSetList{}
	if err := s.List(t.Context(), sets, client.InNamespace(s.namespace)); err != nil || len(sets.Items) != 2 {
		t.Errorf("there are %d sets (%v), want 2", len(sets.Items), err)
	}
}

func testPriority(t *testing.T, s *scenario) {
	s.joins = s.join(t)
	s.start(t)
	deployment := s.deploy(t, 3)
	machines := s.running(t, 3)
	marked := machines[1]
	before := marked.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, machinev1alpha1.MachinePriority, "1")
	if err := s.Patch(t.Context(), marked, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 2 })
	for _, machine := range s.running(t, 2) {
		if machine.Name == marked.Name {
			t.Errorf("machine %s is left, which has the lowest priority", machine.Name)
		}
	}
}

func testBudget(t *testing.T, s *scenario) {
	s.joins = s.join(t)
	s.start(t)
	deployment := s.deploy(t, 1)
	machine := s.running(t, 1)[0]
	labels := map[string]string{"app": "db"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db", Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: machine.Name, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "db", Image: "db"}},
		},
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	agent := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "agent", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: new(true),
		}}},
		Spec: corev1.PodSpec{NodeName: machine.Name, Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}
	s.create(t, budget, pod, agent)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := s.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	// No controller has observed the disruption budget yet: the first pass has to end nevertheless.
	if err := s.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if len(found) != 1 {
			return fmt.Errorf("%d machines", len(found))
		}
		last := found[0].Status.LastOperation
		if last.Type != machinev1alpha1.MachineOperationDrainNode || !strings.Contains(last.Description, "cannot be evicted yet: "+s.namespace+"/db") {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})
	if left := s.names(); len(left) != 1 {
		t.Fatalf("the infrastructure has %v", left)
	}
	node := &corev1.Node{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: machine.Name}, node); err != nil || !node.Spec.Unschedulable {
		t.Errorf("the Node is not cordoned (%v)", err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
	if err := s.Status().Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	s.gone(t)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("pod: %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(agent), agent); err != nil {
		t.Errorf("pod of a DaemonSet: %v", err)
	}
}

// testRestart kills the process when a machine was created, but its provider ID was not written, and when one was deleted.
func testRestart(t *testing.T, s *scenario) {
	// dying does not return before the context of the process ends.
	dying := func() (reached chan struct{}, hook func(context.Context) error) {
		reached = make(chan struct{})
		var once sync.Once
		return reached, func(ctx context.Context) error {
			once.Do(func() { close(reached) })
			<-ctx.Done()
			return ctx.Err()
		}
	}
	after := func(stop func(), reached chan struct{}) {
		t.Helper()
		select {
		case <-reached:
		case <-time.After(time.Minute):
			t.Fatal("the infrastructure was not called")
		}
		stop()
	}
	var made, deleted chan struct{}
	made, s.afterCreation = dying()
	stop := s.start(t)
	deployment := s.deploy(t, 1)
	after(stop, made)
	s.afterCreation = nil
	name := s.names()[0]
	s.join(t)(name)
	deleted, s.afterDeletion = dying()
	stop = s.start(t)
	if machine := s.running(t, 1)[0]; machine.Name != name || machine.Spec.ProviderID != id(name) {
		t.Errorf("machine is %s, %s", machine.Name, machine.Spec.ProviderID)
	}
	if s.most != 1 {
		t.Errorf("%d machines were created", s.most)
	}

	if err := s.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	after(stop, deleted)
	s.afterDeletion = nil
	s.start(t)
	s.gone(t)
	node := &corev1.Node{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: name}, node); !apierrors.IsNotFound(err) {
		t.Errorf("Node: %v", err)
	}
}

// testApart runs either process without the other: each does its part, and goes on when the other is there again.
func testApart(t *testing.T, s *scenario) {
	step := env.Story(t)
	s.joins = s.join(t)
	step("the generic process creates Machines, which only the other one works on")
	stopGeneric := s.startGeneric(t)
	deployment := s.deploy(t, 2)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if len(found) != 2 {
			return fmt.Errorf("%d machines", len(found))
		}
		return nil
	})
	for _, machine := range s.machines(t, func([]*machinev1alpha1.Machine) error { return nil }) {
		if machine.Status.CurrentStatus.Phase != "" {
			t.Errorf("machine %s has phase %s", machine.Name, machine.Status.CurrentStatus.Phase)
		}
	}
	step("the process of the provider creates them at the infrastructure")
	stopProvider := s.startProvider(t)
	before := s.running(t, 2)
	step("without the generic process, a lost machine fails and is not replaced")
	stopGeneric()
	if err := s.DeleteMachine(t.Context(), driver.Request{Machine: before[0]}); err != nil {
		t.Fatal(err)
	}
	s.ready(t, before[0].Name, corev1.ConditionFalse)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		for _, machine := range found {
			if machine.Name == before[0].Name && machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed {
				return nil
			}
		}
		return fmt.Errorf("machine %s has not failed yet", before[0].Name)
	})
	step("the generic process replaces it")
	stopGeneric = s.startGeneric(t)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if slices.ContainsFunc(found, func(m *machinev1alpha1.Machine) bool { return m.Name == before[0].Name }) {
			return fmt.Errorf("machine %s is left", before[0].Name)
		}
		return allRunning(found, 2)
	})
	step("a deletion begins without the process of the provider, and ends with it")
	stopProvider()
	if err := s.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		for _, machine := range found {
			if machine.DeletionTimestamp == nil {
				return fmt.Errorf("machine %s is not being deleted", machine.Name)
			}
		}
		return nil
	})
	if left := s.names(); len(left) != 2 {
		t.Errorf("the infrastructure has %v", left)
	}
	s.startProvider(t)
	s.gone(t)
	leases := &coordinationv1.LeaseList{}
	if err := s.List(t.Context(), leases, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, lease := range leases.Items {
		names = append(names, lease.Name)
	}
	slices.Sort(names)
	if want := []string{"machine-controller", "machine-controller-manager"}; !slices.Equal(names, want) {
		t.Errorf("Leases are %v, want %v", names, want)
	}
	stopGeneric()
}

// testFailure has an infrastructure without capacity, and a machine that is deleted although it cannot be drained.
func testFailure(t *testing.T, s *scenario) {
	s.joins = s.join(t)
	spoiled := true
	s.afterCreation = func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if spoiled {
			clear(s.infrastructure.machines)
			return driver.Errorf(driver.ResourceExhausted, "quota is used up")
		}
		return nil
	}
	s.start(t)
	s.deploy(t, 1)
	machine := s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if len(found) != 1 {
			return fmt.Errorf("%d machines", len(found))
		}
		status := found[0].Status
		if status.CurrentStatus.Phase != machinev1alpha1.MachineCrashLoopBackOff || status.LastOperation.ErrorCode != "ResourceExhausted" {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})[0]
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.MachineDeployment) error {
		if failed := found[0].Status.FailedMachines; len(failed) != 1 || failed[0].LastOperation.ErrorCode != "ResourceExhausted" {
			return fmt.Errorf("failed machines: %+v", failed)
		}
		return nil
	}, client.InNamespace(s.namespace))
	s.mu.Lock()
	spoiled = false
	s.mu.Unlock()
	// A change by a user is acted on at once.
	before := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, "example.com/try", "now")
	if err := s.Patch(t.Context(), machine, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	machine = s.running(t, 1)[0]

	// An annotation of the Node replaces the machine.
	node := &corev1.Node{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: machine.Name}, node); err != nil {
		t.Fatal(err)
	}
	unmarked := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, machinev1alpha1.TriggerDeletionByMCM, "true")
	if err := s.Patch(t.Context(), node, client.MergeFrom(unmarked)); err != nil {
		t.Fatal(err)
	}
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if slices.ContainsFunc(found, func(m *machinev1alpha1.Machine) bool { return m.Name == machine.Name }) {
			return fmt.Errorf("machine %s is left", machine.Name)
		}
		return allRunning(found, 1)
	})
}

// agent does what the gardener-node-agent and gardener-resource-manager do with Nodes: it reports results of updates, and removes the taint of Nodes
// whose critical components are ready.
func (s *scenario) agent(t *testing.T, result func(node string) string) {
	t.Helper()
	watch, err := s.Watch(t.Context(), &corev1.NodeList{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			node, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			before := node.DeepCopy()
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == constants.TaintNodeCriticalComponentsNotReady })
			if updateReason(node) == machinev1alpha1.ReadyForUpdate && node.Labels[machinev1alpha1.NodeUpdateResult] == "" {
				metav1.SetMetaDataLabel(&node.ObjectMeta, machinev1alpha1.NodeUpdateResult, result(node.Name))
				metav1.SetMetaDataAnnotation(&node.ObjectMeta, machinev1alpha1.MachineUpdateFailedReason, "no space left")
			}
			// Another client may have changed it, which is another event.
			if err := s.Patch(t.Context(), node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil &&
				!apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && t.Context().Err() == nil {
				t.Errorf("patch Node: %v", err)
			}
		}
	}()
}

func updateReason(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		if c.Type == machinev1alpha1.NodeInPlaceUpdate {
			return c.Reason
		}
	}
	return ""
}

func inPlaceStrategy(orchestration machinev1alpha1.OrchestrationType, surge, unavailable int32) machinev1alpha1.MachineDeploymentStrategy {
	return machinev1alpha1.MachineDeploymentStrategy{
		Type: machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &machinev1alpha1.InPlaceUpdateMachineDeployment{
			OrchestrationType: orchestration, UpdateConfiguration: machinev1alpha1.UpdateConfiguration{
				MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)),
			},
		},
	}
}

// updated waits until all machines of a deployment are updated and run, and that no other machines exist than the given ones, and a number of others.
func (s *scenario) updated(t *testing.T, before []*machinev1alpha1.Machine, others int) {
	t.Helper()
	least := len(before)
	after := s.machines(t, func(found []*machinev1alpha1.Machine) error {
		running := 0
		for _, machine := range found {
			if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
				running++
			}
		}
		least = min(least, running)
		for _, machine := range found {
			if machine.Spec.Class.Name != "new" {
				return fmt.Errorf("machine %s has class %s, and phase %s", machine.Name, machine.Spec.Class.Name, machine.Status.CurrentStatus.Phase)
			}
		}
		return allRunning(found, len(before))
	})
	if least < len(before)-1 {
		t.Errorf("at times there were %d running machines", least)
	}
	for _, machine := range after {
		if slices.ContainsFunc(before, func(m *machinev1alpha1.Machine) bool { return m.UID == machine.UID }) {
			continue
		}
		if others--; others < 0 {
			t.Errorf("machine %s is another one", machine.Name)
		}
	}
	for _, machine := range after {
		env.Await(t, s.site, env.Named[*corev1.Node]("", machine.Name), func(node *corev1.Node) error {
			_, candidate := node.Labels[machinev1alpha1.NodeCandidateForUpdate]
			if candidate || node.Spec.Unschedulable || node.Labels["version"] != "new" {
				return fmt.Errorf("labels are %v, and unschedulable is %t", node.Labels, node.Spec.Unschedulable)
			}
			return nil
		})
	}
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.MachineDeployment) error {
		n := int32(len(before))
		if status := found[0].Status; status.UpdatedReplicas != n || status.AvailableReplicas != n || status.Replicas != n {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	}, client.InNamespace(s.namespace))
}

// protected waits until a class of machines is protected with its Secret, and another one is not.
func (s *scenario) protected(t *testing.T, class, other string) {
	t.Helper()
	for name, want := range map[string]bool{class: true, other: false} {
		check := func(object client.Object) error {
			if found := object.GetFinalizers(); (len(found) > 0) != want {
				return fmt.Errorf("%T %s has finalizers %v", object, name, found)
			}
			return nil
		}
		env.Await(t, s.site, env.Named[*machinev1alpha1.MachineClass](s.namespace, name), func(c *machinev1alpha1.MachineClass) error { return check(c) })
		env.Await(t, s.site, env.Named[*corev1.Secret](s.namespace, name), func(secret *corev1.Secret) error { return check(secret) })
	}
}

func toNew(d *machinev1alpha1.MachineDeployment) {
	d.Spec.Template.Spec.Class.Name = "new"
	metav1.SetMetaDataLabel(&d.Spec.Template.Spec.NodeTemplate.ObjectMeta, "version", "new")
}

// testInPlace has deployments whose machines are updated and not replaced.
func testInPlace(t *testing.T, s *scenario) {
	step := env.Story(t)
	var mu sync.Mutex
	failing := map[string]bool{}
	s.joins = s.join(t)
	s.start(t)
	s.agent(t, func(node string) string {
		mu.Lock()
		defer mu.Unlock()
		if failing[node] {
			return machinev1alpha1.NodeUpdateFailed
		}
		return machinev1alpha1.NodeUpdateSuccessful
	})
	deployment := s.deploy(t, 3)
	before := s.running(t, 3)

	step("a failure stops the update, and says why")
	mu.Lock()
	failing[before[0].Name] = true
	mu.Unlock()
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy = inPlaceStrategy(machinev1alpha1.OrchestrationTypeAuto, 0, 1)
		toNew(d)
	})
	env.AwaitList(t, s.site, func(found []*machinev1alpha1.MachineDeployment) error {
		for _, condition := range found[0].Status.Conditions {
			if condition.Reason == "InPlaceUpdateFailed" && strings.Contains(condition.Message, "no space left") {
				return nil
			}
		}
		return fmt.Errorf("conditions are %+v", found[0].Status.Conditions)
	}, client.InNamespace(s.namespace))
	for _, machine := range before[1:] {
		node := &corev1.Node{}
		if err := s.Get(t.Context(), client.ObjectKey{Name: machine.Name}, node); err != nil {
			t.Fatal(err)
		}
		if node.Labels[machinev1alpha1.NodeCandidateForUpdate] != "true" || node.Labels[machinev1alpha1.NodeSelectedForUpdate] != "" {
			t.Errorf("Node %s has labels %v", node.Name, node.Labels)
		}
	}

	step("the user has it tried again, and the others follow")
	mu.Lock()
	delete(failing, before[0].Name)
	mu.Unlock()
	env.EditStatus(t, s.site, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: before[0].Name}}, func(node *corev1.Node) {
		for i := range node.Status.Conditions {
			if node.Status.Conditions[i].Type == machinev1alpha1.NodeInPlaceUpdate {
				node.Status.Conditions[i].Reason = machinev1alpha1.ReadyForUpdate
			}
		}
	})
	s.updated(t, before, 0)
	s.protected(t, "new", "old")
}

// testManual has a deployment whose machines are updated when the user selects their Nodes, and then one with a surge.
func testManual(t *testing.T, s *scenario) {
	step := env.Story(t)
	s.joins = s.join(t)
	stop := s.start(t)
	s.agent(t, func(string) string { return machinev1alpha1.NodeUpdateSuccessful })
	deployment := s.deploy(t, 2)
	before := s.running(t, 2)

	step("the machines are candidates")
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy = inPlaceStrategy(machinev1alpha1.OrchestrationTypeManual, 0, 0)
		toNew(d)
	})
	for _, machine := range before {
		env.Await(t, s.site, env.Named[*corev1.Node]("", machine.Name), func(node *corev1.Node) error {
			if reason := updateReason(node); reason != machinev1alpha1.CandidateForUpdate {
				return fmt.Errorf("the reason is %q", reason)
			}
			return nil
		})
	}

	step("the user selects them, and both processes restart")
	for _, machine := range before {
		env.Edit(t, s.site, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name}}, func(node *corev1.Node) {
			metav1.SetMetaDataLabel(&node.ObjectMeta, machinev1alpha1.NodeSelectedForUpdate, "true")
		})
	}
	stop()
	s.start(t)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		for _, machine := range found {
			if machine.Spec.Class.Name != "new" {
				return fmt.Errorf("machine %s has class %s, and phase %s", machine.Name, machine.Spec.Class.Name, machine.Status.CurrentStatus.Phase)
			}
		}
		return allRunning(found, 2)
	})
	s.protected(t, "new", "old")

	step("with a surge, as many machines are other ones")
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy = inPlaceStrategy(machinev1alpha1.OrchestrationTypeAuto, 1, 0)
		d.Spec.Template.Spec.Class.Name = "old"
		metav1.SetMetaDataLabel(&d.Spec.Template.Spec.NodeTemplate.ObjectMeta, "version", "newer")
	})
	after := s.machines(t, func(found []*machinev1alpha1.Machine) error {
		for _, machine := range found {
			if machine.Spec.Class.Name != "old" {
				return fmt.Errorf("machine %s has class %s, and phase %s", machine.Name, machine.Spec.Class.Name, machine.Status.CurrentStatus.Phase)
			}
		}
		return allRunning(found, 2)
	})
	kept := 0
	for _, machine := range after {
		if slices.ContainsFunc(before, func(m *machinev1alpha1.Machine) bool { return m.UID == machine.UID }) {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d machines were kept, want 1", kept)
	}
}

// testOrphans has a machine whose Machine was deleted by force, and a Machine that has lost its set.
func testOrphans(t *testing.T, s *scenario) {
	s.joins = s.join(t)
	deleted := make(chan struct{}, 10)
	s.afterDeletion = func(context.Context) error {
		deleted <- struct{}{}
		return nil
	}
	s.infrastructure.machines[id("orphan")] = driver.Request{Machine: &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "orphan"}}}
	s.startGeneric(t)
	s.startProvider(t, func(o *ProviderOptions) { o.OrphansPeriod = time.Second })
	select {
	case <-deleted:
	case <-time.After(time.Minute):
		t.Fatalf("the infrastructure still has %v", s.names())
	}
	if left := s.names(); len(left) > 0 {
		t.Errorf("the infrastructure still has %v", left)
	}

	s.deploy(t, 1)
	machine := s.running(t, 1)[0]
	before := machine.DeepCopy()
	machine.OwnerReferences = nil
	if err := s.Patch(t.Context(), machine, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if err := allRunning(found, 1); err != nil {
			return err
		}
		if found[0].UID != before.UID || metav1.GetControllerOf(found[0]) == nil {
			return fmt.Errorf("machine %s has owners %v", found[0].Name, found[0].OwnerReferences)
		}
		return nil
	})
}
