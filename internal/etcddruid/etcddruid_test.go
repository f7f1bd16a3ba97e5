package etcddruid

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/test/env"
)

// cluster is a kube-apiserver with etcd-druid. There are no pods: tests write what a StatefulSet's controller and the sidecars would.
type cluster struct {
	*testing.T
	client client.WithWatch
}

func start(t *testing.T) *cluster {
	t.Helper()
	garden := env.Start(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(garden.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Druid()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := garden.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	component := Component()
	options := component.Options
	component.Options = func(c *etcddruidconfigv1alpha1.EtcdDruidConfiguration, o *manager.Options) {
		options(c, o)
		o.Controller.SkipNameValidation = new(true) // a test may run more than once
	}
	config, err := component.Config.Decode(fmt.Appendf(nil, `
apiVersion: etcddruid.config.gardener.cloud/v1alpha1
kind: EtcdDruidConfiguration
clientConnection:
  kubeconfig: %s
leaderElection:
  leaderElect: false
images:
  etcd: example/etcd:1
  backupRestore: example/gardener:1
`, kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	config.Server = etcddruidconfigv1alpha1.ServerConfiguration{}
	running, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- component.Run(running, config, testr.New(t)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("etcd-druid ended: %v", err)
		}
	})
	return &cluster{T: t, client: c}
}

func (c *cluster) awaitEtcd(key client.ObjectKey, check func(*druidv1alpha1.Etcd) error) *druidv1alpha1.Etcd {
	c.Helper()
	return env.Await(c, c.client, env.Named[*druidv1alpha1.Etcd](key.Namespace, key.Name), check)
}

func (c *cluster) namespace(name string) string {
	c.Helper()
	if err := c.client.Create(c.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		c.Fatal(err)
	}
	return name
}

func (c *cluster) get(key client.ObjectKey, object client.Object) {
	c.Helper()
	if err := c.client.Get(c.Context(), key, object); err != nil {
		c.Fatal(err)
	}
}

// pods sets the status of a StatefulSet as its controller does when so many pods are ready.
func (c *cluster) pods(key client.ObjectKey, ready int32) {
	c.Helper()
	statefulSet := &appsv1.StatefulSet{}
	c.get(key, statefulSet)
	before := statefulSet.DeepCopy()
	statefulSet.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: statefulSet.Generation, Replicas: *statefulSet.Spec.Replicas, ReadyReplicas: ready, CurrentReplicas: ready,
		UpdatedReplicas: *statefulSet.Spec.Replicas, CurrentRevision: "1", UpdateRevision: "1",
	}
	if err := c.client.Status().Patch(c.Context(), statefulSet, client.MergeFrom(before)); err != nil {
		c.Fatal(err)
	}
}

// sign renews a Lease as a sidecar does.
func (c *cluster) sign(key client.ObjectKey, holder string, at time.Time, annotations map[string]string) {
	c.Helper()
	lease := env.Await(c, c.client, env.Named[*coordinationv1.Lease](key.Namespace, key.Name), env.Exists).DeepCopy()
	before := lease.DeepCopy()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &metav1.MicroTime{Time: at}
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, key, value)
	}
	if err := c.client.Patch(c.Context(), lease, client.MergeFrom(before)); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) change(etcd *druidv1alpha1.Etcd, change func(*druidv1alpha1.Etcd)) {
	c.Helper()
	c.get(client.ObjectKeyFromObject(etcd), etcd)
	before := etcd.DeepCopy()
	change(etcd)
	if err := c.client.Patch(c.Context(), etcd, client.MergeFrom(before)); err != nil {
		c.Fatal(err)
	}
}

func conditions(etcd *druidv1alpha1.Etcd) map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus {
	out := map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{}
	for _, c := range etcd.Status.Conditions {
		out[c.Type] = c.Status
	}
	return out
}

func wantConditions(want map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus) func(*druidv1alpha1.Etcd) error {
	return func(etcd *druidv1alpha1.Etcd) error {
		if diff := cmp.Diff(want, conditions(etcd)); diff != "" {
			return fmt.Errorf("conditions (-want +got):\n%s\n%+v", diff, etcd.Status.Conditions)
		}
		return nil
	}
}

func reconciled(etcd *druidv1alpha1.Etcd) error {
	last := etcd.Status.LastOperation
	switch {
	case etcd.Status.ObservedGeneration == nil || *etcd.Status.ObservedGeneration != etcd.Generation:
		return fmt.Errorf("generation %d is not observed: %+v %+v", etcd.Generation, last, etcd.Status.LastErrors)
	case last == nil || last.State != druidv1alpha1.LastOperationStateSucceeded:
		return fmt.Errorf("last operation: %+v", last)
	case etcd.Annotations[druidv1alpha1.DruidOperationAnnotation] != "":
		return errors.New("the annotation is still there")
	}
	return nil
}

func TestEtcdDruid(t *testing.T) {
	c := start(t)
	t.Run("life of an etcd", func(t *testing.T) { testLife(&cluster{T: t, client: c.client}) })
	t.Run("spec waits for the annotation", func(t *testing.T) { testAnnotation(&cluster{T: t, client: c.client}) })
	t.Run("peer TLS comes before further members", func(t *testing.T) { testPeerTLS(&cluster{T: t, client: c.client}) })
	t.Run("unsupported", func(t *testing.T) { testUnsupported(&cluster{T: t, client: c.client}) })
	t.Run("copy backups", func(t *testing.T) { testCopy(&cluster{T: t, client: c.client}) })
}

func newEtcd(namespace string) *druidv1alpha1.Etcd {
	return &druidv1alpha1.Etcd{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-main"},
		Spec: druidv1alpha1.EtcdSpec{
			Replicas: 1, Labels: map[string]string{"role": "main"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "main"}},
			Backup: druidv1alpha1.BackupSpec{Store: &druidv1alpha1.StoreSpec{
				Provider: new(druidv1alpha1.StorageProvider("local")), Container: new("bucket"), Prefix: namespace + "/etcd-main",
			}},
		},
	}
}

func testLife(c *cluster) {
	step := env.Story(c)
	namespace := c.namespace("life")
	etcd := newEtcd(namespace)
	key := client.ObjectKeyFromObject(etcd)
	named := func(suffix string) client.ObjectKey {
		return client.ObjectKey{Namespace: namespace, Name: etcd.Name + suffix}
	}
	step("one member is created")
	if err := c.client.Create(c.Context(), etcd); err != nil {
		c.Fatal(err)
	}
	created := c.awaitEtcd(key, reconciled)
	if got := created.Status.LastOperation.Type; got != druidv1alpha1.LastOperationTypeCreate {
		c.Errorf("last operation is %s", got)
	}
	c.awaitEtcd(key, wantConditions(map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{
		"Ready": "False", "AllMembersReady": "False", "AllMembersUpdated": "False", "BackupReady": "Unknown",
	}))

	step("the pod starts, and its sidecar takes snapshots")
	c.pods(key, 1)
	now := time.Now()
	c.sign(named("-0"), "8e9e05c52164694d:Leader", now, nil)
	c.sign(named("-full-snap"), "10", now, nil)
	ready := c.awaitEtcd(key, wantConditions(map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{
		"Ready": "True", "AllMembersReady": "True", "AllMembersUpdated": "True", "BackupReady": "True",
	}))
	if !*ready.Status.Ready || ready.Status.ReadyReplicas != 1 || ready.Status.Replicas != 1 {
		c.Errorf("status %+v", ready.Status)
	}
	if members := ready.Status.Members; len(members) != 1 || *members[0].ID != "8e9e05c52164694d" || *members[0].Role != druidv1alpha1.EtcdRoleLeader {
		c.Errorf("members %+v", members)
	}

	step("a renewal of the Lease changes nothing in the status")
	c.sign(named("-0"), "8e9e05c52164694d:Leader", now.Add(10*time.Second), nil)

	step("changes by other clients are reverted")
	service := &corev1.Service{}
	c.get(named("-client"), service)
	service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	if err := c.client.Update(c.Context(), service); err != nil {
		c.Fatal(err)
	}
	env.Await(c, c.client, service, func(s *corev1.Service) error {
		if s.Spec.SessionAffinity != corev1.ServiceAffinityNone {
			return fmt.Errorf("session affinity is %s", s.Spec.SessionAffinity)
		}
		return nil
	})

	step("from one member to three, with larger volumes")
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-main-etcd-main-0", Labels: map[string]string{
			"app.kubernetes.io/managed-by": "etcd-druid", "app.kubernetes.io/part-of": "etcd-main", "app.kubernetes.io/component": "etcd-statefulset",
		}},
	}
	statefulSet := &appsv1.StatefulSet{}
	c.get(key, statefulSet)
	claim.Spec = statefulSet.Spec.VolumeClaimTemplates[0].Spec
	claim.Spec.StorageClassName = new("expandable") // admission allows only claims with such a class to grow, once they are bound
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "expandable"}, Provisioner: "example.com/volumes", AllowVolumeExpansion: new(true)}
	for _, object := range []client.Object{class, claim} {
		if err := c.client.Create(c.Context(), object); err != nil {
			c.Fatal(err)
		}
	}
	env.EditStatus(c, c.client, claim, func(p *corev1.PersistentVolumeClaim) { p.Status.Phase = corev1.ClaimBound })
	larger := resource.MustParse("100Gi")
	c.change(etcd, func(e *druidv1alpha1.Etcd) {
		e.Spec.Replicas, e.Spec.StorageCapacity = 3, &larger
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.DruidOperationReconcile)
	})
	if grown := c.awaitEtcd(key, reconciled); conditions(grown)[druidv1alpha1.ConditionTypeAllMembersUpdated] != druidv1alpha1.ConditionFalse {
		c.Errorf("the change is not observed yet, but the conditions are %v", conditions(grown))
	}
	c.get(key, statefulSet)
	if got := *statefulSet.Spec.Replicas; got != 3 {
		c.Errorf("StatefulSet has %d replicas", got)
	}
	c.get(client.ObjectKeyFromObject(claim), claim)
	if got := claim.Spec.Resources.Requests[corev1.ResourceStorage]; got.Cmp(larger) != 0 {
		c.Errorf("PersistentVolumeClaim requests %s, want %s", &got, &larger)
	}
	budget := &policyv1.PodDisruptionBudget{}
	c.get(key, budget)
	if got := budget.Spec.MinAvailable.IntValue(); got != 2 {
		c.Errorf("%d pods must be available", got)
	}
	c.pods(key, 1)
	c.sign(named("-1"), "2:Learner", time.Now(), nil)
	c.awaitEtcd(key, wantConditions(map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{
		"Ready": "False", "AllMembersReady": "False", "AllMembersUpdated": "True", "BackupReady": "True",
	}))
	c.pods(key, 2)
	c.sign(named("-1"), "2:Member", time.Now(), nil)
	c.awaitEtcd(key, wantConditions(map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{
		"Ready": "True", "AllMembersReady": "False", "AllMembersUpdated": "True", "BackupReady": "True",
	}))

	step("scaled to zero")
	c.change(etcd, func(e *druidv1alpha1.Etcd) {
		e.Spec.Replicas = 0
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, druidv1alpha1.GardenerOperationAnnotation, druidv1alpha1.DruidOperationReconcile)
	})
	stopped := c.awaitEtcd(key, reconciled)
	if stopped.Annotations[druidv1alpha1.GardenerOperationAnnotation] != "" {
		c.Error("the annotation is still there")
	}
	c.get(key, statefulSet)
	if got := *statefulSet.Spec.Replicas; got != 0 {
		c.Errorf("StatefulSet has %d replicas", got)
	}

	step("deleted, while a pod still runs")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-main-0", Labels: statefulSet.Spec.Template.Labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "example/etcd:1"}}},
	}
	if err := c.client.Create(c.Context(), pod); err != nil {
		c.Fatal(err)
	}
	if err := c.client.Delete(c.Context(), etcd); err != nil {
		c.Fatal(err)
	}
	env.AwaitList(c, c.client, env.None[*appsv1.StatefulSet], client.InNamespace(namespace))
	c.get(named("-config"), &corev1.ConfigMap{}) // the pod still needs it
	if err := c.client.Delete(c.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		c.Fatal(err)
	}
	env.AwaitGone(c, c.client, etcd)
	for _, object := range []client.Object{&corev1.Service{}, &coordinationv1.Lease{}, &corev1.ConfigMap{}} {
		for _, suffix := range []string{"-client", "-peer", "-0", "-config"} {
			if err := c.client.Get(c.Context(), named(suffix), object); !apierrors.IsNotFound(err) {
				c.Errorf("%T %s is still there: %v", object, named(suffix), err)
			}
		}
	}
}

func testAnnotation(c *cluster) {
	etcd := newEtcd(c.namespace("annotation"))
	key := client.ObjectKeyFromObject(etcd)
	if err := c.client.Create(c.Context(), etcd); err != nil {
		c.Fatal(err)
	}
	c.awaitEtcd(key, reconciled)
	c.change(etcd, func(e *druidv1alpha1.Etcd) {
		e.Spec.PriorityClassName = new("system-cluster-critical")
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, druidv1alpha1.SuspendEtcdSpecReconcileAnnotation, "")
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.DruidOperationReconcile)
	})
	// A change of the StatefulSet leads to another status, which shows that the Etcd was reconciled.
	c.pods(key, 1)
	c.awaitEtcd(key, func(e *druidv1alpha1.Etcd) error {
		if e.Status.ReadyReplicas != 1 {
			return errors.New("not seen")
		}
		return nil
	})
	statefulSet := &appsv1.StatefulSet{}
	c.get(key, statefulSet)
	if got := statefulSet.Spec.Template.Spec.PriorityClassName; got != "" {
		c.Errorf("priority class is %q although the Etcd is suspended", got)
	}
	c.change(etcd, func(e *druidv1alpha1.Etcd) {
		delete(e.Annotations, druidv1alpha1.SuspendEtcdSpecReconcileAnnotation)
	})
	c.awaitEtcd(key, reconciled)
	c.get(key, statefulSet)
	if got := statefulSet.Spec.Template.Spec.PriorityClassName; got != "system-cluster-critical" {
		c.Errorf("priority class is %q", got)
	}
}

func testPeerTLS(c *cluster) {
	etcd := newEtcd(c.namespace("peer-tls"))
	key := client.ObjectKeyFromObject(etcd)
	if err := c.client.Create(c.Context(), etcd); err != nil {
		c.Fatal(err)
	}
	c.awaitEtcd(key, reconciled)
	first := client.ObjectKey{Namespace: etcd.Namespace, Name: "etcd-main-0"}
	c.sign(first, "1:Leader", time.Now(), map[string]string{druidv1alpha1.LeaseAnnotationKeyPeerURLTLSEnabled: "false"})
	c.change(etcd, func(e *druidv1alpha1.Etcd) {
		e.Spec.Replicas = 3
		e.Spec.Etcd.PeerURLTLS = &druidv1alpha1.PeerTLSConfig{TLSConfig: druidv1alpha1.TLSConfig{
			TLSCASecretRef:     druidv1alpha1.SecretReference{SecretReference: corev1.SecretReference{Name: "ca"}},
			ServerTLSSecretRef: corev1.SecretReference{Name: "server"},
		}}
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.DruidOperationReconcile)
	})
	c.awaitEtcd(key, func(e *druidv1alpha1.Etcd) error {
		if last := e.Status.LastOperation; last.Type != druidv1alpha1.LastOperationTypeReconcile || e.Status.PeerURLTLSEnabled == nil || *e.Status.PeerURLTLSEnabled {
			return fmt.Errorf("%+v", e.Status)
		}
		return nil
	})
	statefulSet := env.Await(c, c.client, env.Named[*appsv1.StatefulSet](key.Namespace, key.Name), func(s *appsv1.StatefulSet) error {
		for _, volume := range s.Spec.Template.Spec.Volumes {
			if volume.Name == "peer-ca" {
				return nil
			}
		}
		return errors.New("there is no volume for the CA certificate of peers")
	})
	if got := *statefulSet.Spec.Replicas; got != 1 {
		c.Errorf("StatefulSet has %d replicas before its first member talks TLS", got)
	}
	c.sign(first, "1:Leader", time.Now(), map[string]string{druidv1alpha1.LeaseAnnotationKeyPeerURLTLSEnabled: "true"})
	c.awaitEtcd(key, reconciled)
	c.get(key, statefulSet)
	if got := *statefulSet.Spec.Replicas; got != 3 {
		c.Errorf("StatefulSet has %d replicas", got)
	}
}

func testUnsupported(c *cluster) {
	etcd := newEtcd(c.namespace("unsupported"))
	key := client.ObjectKeyFromObject(etcd)
	etcd.Spec.Backup.Store.Provider = new(druidv1alpha1.StorageProvider("gcp"))
	if err := c.client.Create(c.Context(), etcd); err != nil {
		c.Fatal(err)
	}
	c.awaitEtcd(key, func(e *druidv1alpha1.Etcd) error {
		if errs := e.Status.LastErrors; len(errs) != 1 || errs[0].Code != "ERR_UNSUPPORTED_SPEC" {
			return fmt.Errorf("last errors %+v", errs)
		}
		return nil
	})
	c.change(etcd, func(e *druidv1alpha1.Etcd) {
		e.Spec.Backup.Store.Provider = new(druidv1alpha1.StorageProvider("local"))
	})
	c.awaitEtcd(key, reconciled)
}

func testCopy(c *cluster) {
	store := func(container string) druidv1alpha1.StoreSpec {
		return druidv1alpha1.StoreSpec{Provider: new(druidv1alpha1.StorageProvider("local")), Container: new(container), Prefix: "etcd-main"}
	}
	task := &druidv1alpha1.EtcdCopyBackupsTask{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace("copy"), Name: "move"},
		Spec: druidv1alpha1.EtcdCopyBackupsTaskSpec{
			SourceStore: store("old"), TargetStore: store("new"), MaxBackups: new(int32(3)),
			WaitForFinalSnapshot: &druidv1alpha1.WaitForFinalSnapshotSpec{Enabled: true, Timeout: &metav1.Duration{Duration: time.Minute}},
		},
	}
	if err := c.client.Create(c.Context(), task); err != nil {
		c.Fatal(err)
	}
	job := env.Await(c, c.client, env.Named[*batchv1.Job](task.Namespace, "move-worker"), env.Exists).DeepCopy()
	want := []string{
		"etcd-backup-restore", "copy",
		"--source-provider=Local", "--source-container=/var/etcd/backups-source", "--source-prefix=etcd-main",
		"--provider=Local", "--container=/var/etcd/backups-target", "--prefix=etcd-main",
		"--result-file=/dev/termination-log", "--max-backups=3", "--wait-for-final-snapshot", "--wait-for-final-snapshot-timeout=1m0s",
	}
	if diff := cmp.Diff(want, job.Spec.Template.Spec.Containers[0].Args); diff != "" {
		c.Errorf("arguments (-want +got):\n%s", diff)
	}
	before := job.DeepCopy()
	now := metav1.Now()
	job.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1,
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	if err := c.client.Status().Patch(c.Context(), job, client.MergeFrom(before)); err != nil {
		c.Fatal(err)
	}
	env.Await(c, c.client, task, func(task *druidv1alpha1.EtcdCopyBackupsTask) error {
		got := map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{}
		for _, c := range task.Status.Conditions {
			got[c.Type] = c.Status
		}
		if diff := cmp.Diff(map[druidv1alpha1.ConditionType]druidv1alpha1.ConditionStatus{"Succeeded": "True", "Failed": "False"}, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}
