// Package etcddruid tests etcd-druid with the controllers and the scheduler of Kubernetes.
package etcddruid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	component "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/etcddruid/etcd"
	"gardener.cloud/gardener/test/env"
)

const (
	namespace    = "shoot--dev--crazy"
	storageClass = "zonal"
)

// TestMembersMoveToZones spreads a cluster whose members are in one zone over three zones. What is played is the kubelets with etcd.
func TestMembersMoveToZones(t *testing.T) {
	controllers, scheduler := env.Program(t, "kubernetes", "kube-controller-manager"), env.Program(t, "kubernetes", "kube-scheduler")
	e := env.Start(t)
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	must(t, err)
	definitions, err := crds.Druid()
	must(t, err)
	must(t, crds.Deploy(t.Context(), c, "test", definitions...))
	prepare(t, c)

	kubeconfig := env.KubeconfigFile(t, e.Config)
	env.StartProgram(t, controllers, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0", "--pvclaimbinder-sync-period=1s",
		"--controllers=statefulset-controller,persistentvolume-binder-controller,persistentvolumeclaim-protection-controller")
	env.StartProgram(t, scheduler, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0")
	k := &kubelets{api: c}
	run(t, e, scheme, k)

	step := env.Story(t)
	step("an etcd cluster is created in one zone")
	cluster := inZones(t, []string{corev1.LabelHostname}, "a")
	must(t, c.Create(t.Context(), cluster))
	awaitUpdated(t, c, cluster)
	if got := strings.Join(zones(t, c), ""); got != "aaa" {
		t.Fatalf("members are in zones %q", got)
	}
	first := env.Await(t, c, env.Named[*corev1.PersistentVolumeClaim](namespace, "etcd-main-etcd-main-0"), env.Exists)

	step("it is to be spread over three")
	k.fewest.Store(3)
	desired := inZones(t, []string{corev1.LabelHostname, corev1.LabelTopologyZone}, "a", "b", "c")
	env.Edit(t, c, cluster, func(e *druidv1alpha1.Etcd) { e.Spec = desired.Spec })
	awaitUpdated(t, c, cluster)
	members := zones(t, c)
	if members[0] != "a" {
		t.Errorf("the member that could stay is in zone %q", members[0])
	}
	slices.Sort(members)
	if got := strings.Join(members, ""); got != "abc" {
		t.Errorf("members are in zones %q", got)
	}
	if fewest := k.fewest.Load(); fewest < 2 {
		t.Errorf("%d members were ready at a time", fewest)
	}
	claim := env.Await(t, c, env.Named[*corev1.PersistentVolumeClaim](namespace, first.Name), env.Exists)
	if claim.UID != first.UID {
		t.Error("the volume of the member that could stay was deleted")
	}
	env.AwaitList(t, c, func(events []*eventsv1.Event) error {
		moves := slices.DeleteFunc(slices.Clone(events), func(e *eventsv1.Event) bool { return e.Regarding.Kind != "Etcd" || e.Reason != "MemberMoving" })
		if len(moves) == 2 {
			return nil
		}
		return fmt.Errorf("%d events of moves", len(moves))
	}, client.InNamespace(namespace))
}

// inZones returns an Etcd as the gardenlet and the webhook for high availability have it.
func inZones(t *testing.T, spread []string, zones ...string) *druidv1alpha1.Etcd {
	t.Helper()
	objects := component.Objects(component.Values{
		Namespace: namespace, Of: instance.Shoot, Role: component.Main, Replicas: 3, Spread: spread, StorageClass: storageClass,
		Secrets: component.Secrets{CA: "ca", PeerCA: "ca", Server: "server", Client: "client", PeerServer: "server"},
	})
	e, ok := objects[0].(*druidv1alpha1.Etcd)
	if !ok {
		t.Fatalf("%T is no Etcd", objects[0])
	}
	e.Spec.SchedulingConstraints.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: inAny(zones...),
	}}
	return e
}

// inAny selects nodes in zones.
func inAny(zones ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones},
	}}}}
}

// prepare creates three nodes in a first zone and one in each of two more, and a volume for each of them.
func prepare(t *testing.T, c client.Client) {
	t.Helper()
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(t, c.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: constants.PriorityClassNameShootControlPlane500}}))
	must(t, c.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: storageClass}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}))
	for i, zone := range []string{"a", "a", "a", "b", "c"} {
		name := fmt.Sprintf("%s-%d", zone, i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
		must(t, c.Create(t.Context(), node))
		env.EditStatus(t, c, node, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			n.Status.Allocatable = corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}
		})
		env.Edit(t, c, node, func(n *corev1.Node) { n.Spec.Taints = nil }) // of new nodes
		must(t, c.Create(t.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: storageClass, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volume"}},
				NodeAffinity:                  &corev1.VolumeNodeAffinity{Required: inAny(zone)},
			},
		}))
	}
}

// run runs etcd-druid, and the kubelets.
func run(t *testing.T, e *env.Env, scheme *runtime.Scheme, k *kubelets) {
	t.Helper()
	mgr, err := manager.New(e.Config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: etcd.CacheByObject()},
	})
	must(t, err)
	long := &metav1.Duration{Duration: time.Hour}
	must(t, etcd.Add(mgr, etcd.Values{
		Config: etcddruidconfigv1alpha1.EtcdControllerConfiguration{
			ConcurrentSyncs: 1, EnableEtcdSpecAutoReconcile: true, MemberUnknownAfter: long, MemberNotReadyAfter: long,
		},
		Images: etcddruidconfigv1alpha1.Images{Etcd: "registry.example.com/etcd", BackupRestore: "registry.example.com/gardener"},
		Clock:  clock.RealClock{},
	}))
	must(t, builder.ControllerManagedBy(mgr).Named("kubelets").For(&corev1.Pod{}).Complete(k))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// kubelets let pods run that have a node, and end those that are deleted. A pod that runs is a member with a vote.
type kubelets struct {
	api client.Client
	// fewest is how many pods were ready at the same time, at least.
	fewest atomic.Int64
}

// Reconcile implements reconcile.Reconciler.
func (k *kubelets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if err := k.count(ctx); err != nil {
		return reconcile.Result{}, err
	}
	pod := &corev1.Pod{}
	if err := k.api.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return reconcile.Result{}, client.IgnoreNotFound(k.api.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
	case pod.Spec.NodeName == "" || ready(pod):
		return reconcile.Result{}, nil
	}
	lease := &coordinationv1.Lease{}
	if err := k.api.Get(ctx, req.NamespacedName, lease); err != nil {
		return reconcile.Result{}, err
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("1:Member"), &metav1.MicroTime{Time: time.Now()}
	lease.Annotations = map[string]string{druidv1alpha1.LeaseAnnotationKeyPeerURLTLSEnabled: "true"}
	if err := k.api.Update(ctx, lease); err != nil {
		return reconcile.Result{}, err
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	return reconcile.Result{}, k.api.Status().Update(ctx, pod)
}

func (k *kubelets) count(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := k.api.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	count := int64(0)
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil && ready(&pods.Items[i]) {
			count++
		}
	}
	for before := k.fewest.Load(); count < before && !k.fewest.CompareAndSwap(before, count); before = k.fewest.Load() {
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// awaitUpdated waits until all members of an Etcd have its current spec and are ready.
func awaitUpdated(t *testing.T, c client.WithWatch, cluster *druidv1alpha1.Etcd) {
	t.Helper()
	env.Await(t, c, cluster, func(e *druidv1alpha1.Etcd) error {
		if observed := e.Status.ObservedGeneration; observed == nil || *observed != e.Generation {
			return errors.New("its spec is not observed")
		}
		for _, want := range []druidv1alpha1.ConditionType{druidv1alpha1.ConditionTypeAllMembersUpdated, druidv1alpha1.ConditionTypeAllMembersReady} {
			if !slices.ContainsFunc(e.Status.Conditions, func(c druidv1alpha1.Condition) bool { return c.Type == want && c.Status == druidv1alpha1.ConditionTrue }) {
				return fmt.Errorf("%s is not True", want)
			}
		}
		return nil
	})
}

// zones returns the zones of the members.
func zones(t *testing.T, c client.Client) []string {
	t.Helper()
	var out []string
	for i := range 3 {
		pod, node := &corev1.Pod{}, &corev1.Node{}
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("etcd-main-%d", i)}, pod))
		must(t, c.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, node))
		out = append(out, node.Labels[corev1.LabelTopologyZone])
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
