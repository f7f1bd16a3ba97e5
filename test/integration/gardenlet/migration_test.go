package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/gardenlet/backupentry"
	"gardener.cloud/gardener/internal/gardenlet/shoot/fence"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/shoot/technicalid"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// agent is the gardenlet of a seed, as far as it has to do with moves, and the extensions of its seed, which are played.
type agent struct {
	name string
	seed client.WithWatch
}

// TestMigration moves a Shoot between the gardenlets of two seeds, which may do what the garden allows to them: the former one has nothing left but the
// BackupEntry, and the other one restores it as far as it gets without pods.
func TestMigration(t *testing.T) {
	f := newFleet(t)
	e, garden, to, shoot, entry := f.e, f.garden, f.to, f.shoot, f.entry
	former, other := startAgent(t, e, "from"), startAgent(t, e, "to")
	step := env.Story(t)
	step("the BackupEntry is on the former seed")
	env.Await(t, garden, entry, func(b *corev1beta1.BackupEntry) error {
		if l := b.Status.LastOperation; l == nil || l.State != "Succeeded" || ptr.Deref(b.Status.SeedName, "") != "from" {
			return fmt.Errorf("status is %+v", b.Status)
		}
		return nil
	})

	step("the former gardenlet waits until the other seed is ready")
	env.Bind(t, garden, shoot, "to")
	env.Await(t, garden, shoot, last("Migrate", "Error", "constraint ReadyForMigration is not reported yet"))

	step("it releases the BackupEntry and hands the Shoot over")
	env.EditStatus(t, garden, shoot, func(s *corev1beta1.Shoot) {
		s.Status.Constraints = []corev1beta1.Condition{{
			Type: corev1beta1.ShootReadyForMigration, Status: corev1beta1.ConditionTrue, Reason: "DestinationSeedReady", Message: "x",
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}}
	})
	env.Await(t, garden, shoot, func(s *corev1beta1.Shoot) error {
		if on := ptr.Deref(s.Status.SeedName, ""); on != "to" {
			return fmt.Errorf("it is on seed %q with last operation %+v", on, s.Status.LastOperation)
		}
		return nil
	})
	env.AwaitGone(t, former.seed, &extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: entry.Name}})

	step("the other one restores credentials and the states of extensions, and copies the backups")
	kept := env.Await(t, other.seed, env.Named[*corev1.Secret](technicalID, "kept"), env.Exists)
	if string(kept.Data["key"]) != "value" || kept.Labels["persist"] != "true" {
		t.Errorf("the Secret is %+v", kept)
	}
	env.Await(t, other.seed, env.Named[*extensionsv1alpha1.DNSRecord](technicalID, "moved-internal"), func(r *extensionsv1alpha1.DNSRecord) error {
		if r.Status.State == nil || string(r.Status.State.Raw) != `{"zone":"z"}` || r.Status.LastOperation == nil || r.Status.LastOperation.Type != "Restore" {
			return fmt.Errorf("status is %+v", r.Status)
		}
		return nil
	})
	env.Await(t, garden, entry, func(b *corev1beta1.BackupEntry) error {
		if l := b.Status.LastOperation; b.Spec.BucketName != string(to.UID) || l.Type != "Restore" || l.State != "Succeeded" || ptr.Deref(b.Status.SeedName, "") != "to" {
			return fmt.Errorf("it is in bucket %q with status %+v", b.Spec.BucketName, b.Status)
		}
		return nil
	})
	env.Await(t, garden, shoot, last("Restore", "Processing", ""))

	step("etcd starts with the copied backups, and the former ones are deleted")
	etcd := env.Await(t, other.seed, env.Named[*druidv1alpha1.Etcd](technicalID, "etcd-main"), env.Exists)
	if etcd.Spec.Replicas != 1 {
		t.Errorf("etcd has %d members", etcd.Spec.Replicas)
	}
	env.AwaitGone(t, garden, &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "source-" + entry.Name}})

	step("nothing is left on the former seed")
	if err := former.seed.Get(t.Context(), client.ObjectKey{Name: technicalID}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
	entries := &extensionsv1alpha1.BackupEntryList{}
	if err := former.seed.List(t.Context(), entries); err != nil || len(entries.Items) > 0 {
		t.Errorf("%d BackupEntries are left: %v", len(entries.Items), err)
	}
}

// fleet is a garden with two seeds, and a Shoot on the first one.
type fleet struct {
	e        *env.Env
	garden   client.WithWatch
	from, to *corev1beta1.Seed
	shoot    *corev1beta1.Shoot
	entry    *corev1beta1.BackupEntry
}

const namespace, technicalID = "garden-dev", "shoot--dev--moved"

func newFleet(t *testing.T) *fleet {
	t.Helper()
	const project = "dev"
	e := env.Start(t, env.Lenient(), env.WithAdmissionController())
	if err := errors.Join(addKinds(e.Scheme), druidv1alpha1.AddToScheme(e.Scheme), gatewayv1.Install(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	logf.SetLogger(logr.Discard())
	garden, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			if err := garden.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
				t.Fatalf("create %T %s: %v", object, object.GetName(), err)
			}
		}
	}
	backups := func(s *corev1beta1.Seed) {
		s.Spec.Backup = &corev1beta1.Backup{Provider: "local", CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"}}
		s.Spec.Settings = &corev1beta1.SeedSettings{VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: false}}
	}
	secret := func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
	}
	from, to := builder.Seed("from", backups), builder.Seed("to", backups)
	create(gardenrbac.Objects()...)
	create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, secret("dns"), secret("backup"), from, to, builder.CloudProfile(builder.Local),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{constants.ProjectName: project}}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: project}, Spec: corev1beta1.ProjectSpec{Namespace: new(namespace)}},
	)
	for _, seed := range []*corev1beta1.Seed{from, to} {
		env.EditStatus(t, garden, seed, func(s *corev1beta1.Seed) {
			s.Status.Gardener, s.Status.ObservedGeneration = &corev1beta1.Gardener{Version: "v1", Name: "gardenlet", ID: "a"}, s.Generation
			s.Status.Conditions = []corev1beta1.Condition{{
				Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "x", Message: "x", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
			}}
		})
		bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: string(seed.UID)}, Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, CredentialsRef: seed.Spec.Backup.CredentialsRef, SeedName: &seed.Name,
		}}
		create(bucket)
		env.EditStatus(t, garden, bucket, func(b *corev1beta1.BackupBucket) {
			b.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Succeeded", LastUpdateTime: metav1.Now()}
		})
	}
	shoot := builder.Shoot("moved", builder.In(namespace), builder.On("from"))
	create(shoot)
	env.EditStatus(t, garden, shoot, func(s *corev1beta1.Shoot) {
		s.Status.SeedName, s.Status.TechnicalID, s.Status.UID, s.Status.ObservedGeneration = new("from"), technicalID, s.UID, s.Generation
		s.Status.Gardener = corev1beta1.Gardener{Version: "v1", Name: "gardenlet", ID: "a"}
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100, LastUpdateTime: metav1.Now()}
	})
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: technicalID + "--" + string(shoot.UID),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shoot, corev1beta1.SchemeGroupVersion.WithKind("Shoot"))},
		},
		Spec: corev1beta1.BackupEntrySpec{BucketName: string(from.UID), SeedName: new("from")},
	}
	saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "moved"}}
	saved.Spec.Gardener = []corev1beta1.GardenerResourceData{{
		Name: "kept", Type: "secret", Labels: map[string]string{"persist": "true"}, Data: runtime.RawExtension{Raw: []byte(`{"data":{"key":"dmFsdWU="},"type":"Opaque"}`)},
	}}
	saved.Spec.Extensions = []corev1beta1.ExtensionResourceState{
		{Kind: "DNSRecord", Name: new("moved-internal"), State: &runtime.RawExtension{Raw: []byte(`{"zone":"z"}`)}},
	}
	create(entry, saved)

	e.CallWebhooks(t)
	return &fleet{e, garden, from, to, shoot, entry}
}

// last returns a check of the last operation of a Shoot.
func last(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState, description string) func(*corev1beta1.Shoot) error {
	return func(s *corev1beta1.Shoot) error {
		if l := s.Status.LastOperation; l.Type != typ || l.State != state || description != "" && l.Description != description {
			return fmt.Errorf("last operation is %+v", l)
		}
		return nil
	}
}

// startAgent starts a seed with the controllers of its gardenlet.
func startAgent(t *testing.T, e *env.Env, name string) *agent {
	t.Helper()
	seedConfig := e.AddCluster(t)
	seed, err := client.NewWithWatch(seedConfig, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){crds.Extensions, crds.Resources, crds.Druid, crds.Machine, crds.Gateway, crds.VerticalPodAutoscaler} {
		definitions, err := read()
		if err == nil {
			err = crds.Deploy(t.Context(), seed, "test", definitions...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gateway := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "x", Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gateway"}}, gateway,
	} {
		if err := seed.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	env.EditStatus(t, seed, gateway, func(g *gatewayv1.Gateway) { g.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: "10.0.0.1"}} })
	a := &agent{name: name, seed: seed}
	a.playExtensions(t, technicalID)

	mgr, err := manager.New(seedConfig, manager.Options{
		Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Logger: process.NewLogger(t.Output(), "info", "text").WithValues("seed", name),
	})
	if err != nil {
		t.Fatal(err)
	}
	own := e.Gardenlet(t, name)
	selected := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{constants.PrefixSeedName + name: "true"})}
	field := func(key string) cache.ByObject { return cache.ByObject{Field: fields.OneTermEqualSelector(key, name)} }
	garden, err := cluster.New(own, func(o *cluster.Options) {
		o.Scheme = e.Scheme
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1beta1.InternalSecret{}}}
		o.Cache = cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1beta1.Shoot{}: selected, &corev1beta1.BackupEntry{}: selected, &corev1beta1.Seed{}: field("metadata.name"),
			&corev1beta1.BackupBucket{}: field("spec.seedName"), &operationsv1alpha1.Bastion{}: field("spec.seedName"),
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	gardenAPI, err := client.NewWithWatch(own, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	hour := &metav1.Duration{Duration: time.Hour}
	unreachable := errors.New("there are no pods")
	if err := errors.Join(
		mgr.Add(garden), technicalid.Index(t.Context(), garden.GetFieldIndexer()),
		fence.Add(mgr, fence.Values{
			SeedName: name, Garden: garden, GardenAPI: gardenAPI, SeedAPI: seed, Confirmation: time.Second, Clock: clock.RealClock{},
		}),
		lifecycle.Add(mgr, lifecycle.Values{
			SeedName: name, Garden: garden, GardenAPI: gardenAPI, SeedAPI: seed, Images: images, Clock: clock.RealClock{},
			Connect:     func(*rest.Config) (client.WithWatch, error) { return nil, unreachable },
			Discover:    func(*rest.Config) ([]*metav1.APIResourceList, error) { return nil, unreachable },
			Gardener:    corev1beta1.Gardener{Version: "v1", Name: "gardenlet", ID: "a"},
			SavesStates: func(context.Context) (bool, error) { return true, nil },
			Config: gardenletconfigv1alpha1.ShootControllerConfiguration{
				ConcurrentSyncs: new(1), SyncPeriod: hour, RetryDuration: hour, DNSEntryTTLSeconds: new(int64(120)),
			},
		}),
		backupentry.Add(mgr, backupentry.Values{
			SeedName: name, Garden: garden, SeedAPI: seed, Clock: clock.RealClock{},
			Config: gardenletconfigv1alpha1.BackupEntryControllerConfiguration{ConcurrentSyncs: new(1), DeletionGracePeriodHours: new(1)},
		}),
	); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the gardenlet of seed %q: %v", name, err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return a
}

// playExtensions does what extensions and etcd-druid do, with nothing outside of the seed.
func (a *agent) playExtensions(t *testing.T, technicalID string) {
	t.Helper()
	play(t, a.seed, &extensionsv1alpha1.BackupEntryList{}, func(ctx context.Context, entry *extensionsv1alpha1.BackupEntry) error {
		if operation := entry.Annotations[constants.GardenerOperation]; operation == "reconcile" || operation == "restore" {
			access := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "etcd-backup"}, Data: map[string][]byte{"bucketName": []byte(entry.Spec.BucketName)},
			}
			if len(entry.Name) > 7 && entry.Name[:7] == "source-" {
				access.Name = "source-etcd-backup"
			}
			if err := a.seed.Create(ctx, access); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return a.operate(ctx, entry)
	})
	play(t, a.seed, &extensionsv1alpha1.DNSRecordList{}, func(ctx context.Context, record *extensionsv1alpha1.DNSRecord) error { return a.operate(ctx, record) })
	play(t, a.seed, &druidv1alpha1.EtcdCopyBackupsTaskList{}, func(ctx context.Context, task *druidv1alpha1.EtcdCopyBackupsTask) error {
		if len(task.Status.Conditions) > 0 || *task.Spec.SourceStore.Container == *task.Spec.TargetStore.Container {
			return nil
		}
		task.Status.ObservedGeneration = &task.Generation
		task.Status.Conditions = []druidv1alpha1.Condition{{
			Type: druidv1alpha1.EtcdCopyBackupsTaskSucceeded, Status: druidv1alpha1.ConditionTrue, LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}}
		return a.seed.Status().Update(ctx, task)
	})
	play(t, a.seed, &druidv1alpha1.EtcdList{}, func(ctx context.Context, etcd *druidv1alpha1.Etcd) error {
		if ptr.Deref(etcd.Status.ObservedGeneration, 0) == etcd.Generation {
			return nil
		}
		etcd.Status.ObservedGeneration, etcd.Status.Ready = &etcd.Generation, new(true)
		return a.seed.Status().Update(ctx, etcd)
	})
}

// operate reports that the requested operation is done.
func (a *agent) operate(ctx context.Context, object extensionsv1alpha1.Object) error {
	requested := object.GetAnnotations()[constants.GardenerOperation]
	types := map[string]corev1beta1.LastOperationType{"reconcile": "Reconcile", "migrate": "Migrate", "restore": "Restore"}
	if types[requested] == "" {
		return nil
	}
	object.GetExtensionStatus().SetObservedGeneration(object.GetGeneration())
	object.GetExtensionStatus().SetLastOperation(&corev1beta1.LastOperation{Type: types[requested], State: "Succeeded", Progress: 100, LastUpdateTime: metav1.Now()})
	if err := a.seed.Status().Update(ctx, object); err != nil {
		return err
	}
	annotations := object.GetAnnotations()
	delete(annotations, constants.GardenerOperation)
	object.SetAnnotations(annotations)
	return a.seed.Update(ctx, object)
}

// play calls a function for each object whenever one has changed, until the test ends. After a conflict there is another change.
func play[T client.Object](t *testing.T, c client.WithWatch, list client.ObjectList, do func(context.Context, T) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		_ = kube.Await(ctx, c, list, func(found []T) error {
			for _, object := range slices.Clone(found) {
				err := do(ctx, object.DeepCopyObject().(T)) //nolint:forcetypeassert // a copy has its original's type
				if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					t.Errorf("the extension: %v", err)
				}
			}
			return errors.New("there may be more")
		}, nil)
	}()
}
