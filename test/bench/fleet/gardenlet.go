package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/seed/registration"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/builder"
)

const (
	// leasePeriod and the rate of requests are the defaults of a gardenlet's configuration.
	leasePeriod = 2 * time.Second
	qps, burst  = 50, 100
	// workers is how many Shoots a simulated gardenlet reconciles at the same time.
	workers = 5
)

// gardenletKinds are what a gardenlet watches in the garden.
var gardenletKinds = []client.Object{
	&corev1beta1.Seed{}, &corev1beta1.Shoot{}, &corev1beta1.ControllerInstallation{}, &corev1beta1.ControllerRegistration{},
	&corev1beta1.CloudProfile{}, &corev1beta1.BackupBucket{}, &corev1beta1.BackupEntry{}, &operationsv1alpha1.Bastion{},
	&seedmanagementv1alpha1.ManagedSeed{}, &seedmanagementv1alpha1.Gardenlet{},
}

// simulated is a gardenlet without a seed.
type simulated struct {
	name   string
	cache  cache.Cache
	api    client.Client
	queue  workqueue.TypedRateLimitingInterface[item]
	fleet  *fleet
	ready  atomic.Bool
	leased *coordinationv1.Lease
	// done are the Shoots that were reported, by key: the cache may not have it yet.
	done sync.Map
}

// item is an object to be reconciled.
type item struct {
	installation bool
	key          client.ObjectKey
}

// fleet is what all simulated gardenlets have done.
type fleet struct {
	seedsReady, succeeded atomic.Int64
	// failed counts passes that were repeated after an error, and lastError is such an error.
	failed    atomic.Int64
	lastError atomic.Pointer[error]
	// changed gets a value when a number has changed.
	changed chan struct{}
}

func (f *fleet) notify() {
	select {
	case f.changed <- struct{}{}:
	default: // the one who waits has yet to look
	}
}

// startGardenlet starts a gardenlet that runs until the context ends.
func (g *garden) startGardenlet(ctx context.Context, name string) error {
	config, err := g.ConfigFor(constants.SeedUserNamePrefix+name, constants.SeedsGroup)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	config = g.latencies.measured(config)
	config.Wrap(gardenlet.RetryForbidden)
	s := &simulated{name: name, fleet: g.fleet, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]())}
	if s.api, err = client.New(config, client.Options{Scheme: g.Scheme, Mapper: g.Client.RESTMapper()}); err != nil {
		return err
	}
	seed := builder.Seed(name)
	err = registration.Register(ctx, s.api, &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{
		ObjectMeta: seed.ObjectMeta, Spec: seed.Spec,
	}})
	if err != nil {
		return err
	}
	if err := s.reportSeed(ctx); err != nil {
		return fmt.Errorf("report Seed %q: %w", name, err)
	}
	options := gardenlet.GardenCache(name)
	options.Scheme, options.Mapper = g.Scheme, g.Client.RESTMapper()
	if s.cache, err = cache.New(config, options); err != nil {
		return err
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	go s.renew(ctx)
	for range workers {
		go s.work(ctx)
	}
	context.AfterFunc(ctx, s.queue.ShutDown)
	return nil
}

// watch starts the watches, and waits until the objects are listed.
func (s *simulated) watch(ctx context.Context) error {
	for _, kind := range gardenletKinds {
		informer, err := s.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: s.observe, UpdateFunc: func(_, object any) { s.observe(object) },
		})
		if err != nil {
			return err
		}
	}
	go s.cache.Start(ctx) //nolint:errcheck // it only returns an error when it is started twice
	if !s.cache.WaitForCacheSync(ctx) {
		return errors.Join(errors.New("caches were not synced"), ctx.Err())
	}
	return nil
}

// observe queues what is to be reported.
func (s *simulated) observe(object any) {
	switch o := object.(type) {
	case *corev1beta1.Seed:
		if ready(o) && s.ready.CompareAndSwap(false, true) {
			s.fleet.seedsReady.Add(1)
			s.fleet.notify()
		}
	case *corev1beta1.Shoot:
		if _, done := s.done.Load(client.ObjectKeyFromObject(o)); !done {
			s.queue.Add(item{key: client.ObjectKeyFromObject(o)})
		}
	case *corev1beta1.ControllerInstallation:
		if len(o.Status.Conditions) == 0 {
			s.queue.Add(item{installation: true, key: client.ObjectKeyFromObject(o)})
		}
	}
}

// ready says whether the gardenlet and the gardener-controller-manager have reported a Seed as ready.
func ready(seed *corev1beta1.Seed) bool {
	for _, t := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedExtensionsReady} {
		if c := kube.Condition(seed.Status.Conditions, t); c == nil || c.Status != corev1beta1.ConditionTrue {
			return false
		}
	}
	return true
}

// work reconciles what is queued.
func (s *simulated) work(ctx context.Context) {
	for {
		next, stopped := s.queue.Get()
		if stopped {
			return
		}
		err := s.reconcile(ctx, next)
		switch {
		case err == nil:
			s.queue.Forget(next)
		case ctx.Err() == nil:
			if !kube.Routine(err) {
				s.fleet.failed.Add(1)
				s.fleet.lastError.Store(&err)
			}
			s.queue.AddRateLimited(next)
		}
		s.queue.Done(next)
	}
}

func (s *simulated) reconcile(ctx context.Context, next item) error {
	if next.installation {
		return s.reconcileInstallation(ctx, next.key)
	}
	return s.reconcileShoot(ctx, next.key)
}

// reconcileInstallation reports an extension as installed.
func (s *simulated) reconcileInstallation(ctx context.Context, key client.ObjectKey) error {
	installation := &corev1beta1.ControllerInstallation{}
	if err := s.cache.Get(ctx, key, installation); err != nil {
		return client.IgnoreNotFound(err)
	}
	after := installation.DeepCopy()
	after.Status.Conditions = conditions(
		corev1beta1.ControllerInstallationValid, corev1beta1.ControllerInstallationInstalled, corev1beta1.ControllerInstallationHealthy,
	)
	progressing := conditions(corev1beta1.ControllerInstallationProgressing)
	progressing[0].Status = corev1beta1.ConditionFalse
	after.Status.Conditions = append(after.Status.Conditions, progressing...)
	return s.api.Status().Patch(ctx, after, client.StrategicMergeFrom(installation))
}

// reconcileShoot reads and writes in the garden what a gardenlet does for a creation, in so far as it is for the Shoot itself.
func (s *simulated) reconcileShoot(ctx context.Context, key client.ObjectKey) error {
	if _, done := s.done.Load(key); done {
		return nil // it was queued by its own changes
	}
	shoot := &corev1beta1.Shoot{}
	if err := s.cache.Get(ctx, key, shoot); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := kube.AddFinalizer(ctx, s.api, shoot, constants.FinalizerGardenerName); err != nil {
		return err
	}
	if err := s.readCredentials(ctx, shoot); err != nil {
		return err
	}
	for _, progress := range []int32{0, 50, 100} {
		after := shoot.DeepCopy()
		s.fill(&after.Status, shoot, progress)
		if err := s.api.Status().Patch(ctx, after, client.StrategicMergeFrom(shoot)); err != nil {
			return err
		}
		shoot = after
	}
	if _, again := s.done.LoadOrStore(key, true); !again {
		s.fleet.succeeded.Add(1)
		s.fleet.notify()
	}
	return nil
}

func (s *simulated) readCredentials(ctx context.Context, shoot *corev1beta1.Shoot) error {
	return errors.Join(
		s.api.Get(ctx, client.ObjectKey{Name: shoot.Namespace[len(constants.ProjectNamespacePrefix):]}, &corev1beta1.Project{}),
		s.api.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}, &securityv1alpha1.CredentialsBinding{}),
		s.api.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}, &corev1.Secret{}),
	)
}

// fill sets the status of a Shoot during its creation. At the end it has conditions.
func (s *simulated) fill(status *corev1beta1.ShootStatus, shoot *corev1beta1.Shoot, progress int32) {
	status.Gardener = gardener(s.name)
	status.SeedName, status.TechnicalID, status.UID = &s.name, "shoot--"+shoot.Namespace[len(constants.ProjectNamespacePrefix):]+"--"+shoot.Name, shoot.UID
	status.ObservedGeneration = shoot.Generation
	status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateProcessing, Progress: progress,
		Description: "Deploying what the shoot needs.", LastUpdateTime: metav1.Now(),
	}
	if progress == 100 {
		status.LastOperation.State = corev1beta1.LastOperationStateSucceeded
		status.LastOperation.Description = "Shoot cluster has been successfully reconciled."
		status.Conditions = conditions(
			corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
			corev1beta1.ShootEveryNodeReady, corev1beta1.ShootSystemComponentsHealthy,
		)
	}
}

func gardener(seed string) corev1beta1.Gardener {
	return corev1beta1.Gardener{ID: seed, Name: "gardenlet-" + seed, Version: "v1.0.0"}
}

// conditions returns conditions with the status True.
func conditions(types ...corev1beta1.ConditionType) []corev1beta1.Condition {
	var out []corev1beta1.Condition
	for _, t := range types {
		out = append(out, corev1beta1.Condition{
			Type: t, Status: corev1beta1.ConditionTrue, Reason: string(t), Message: "Everything that this condition is about is healthy.",
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	return out
}

// reportSeed writes the status of the Seed.
func (s *simulated) reportSeed(ctx context.Context) error {
	seed := &corev1beta1.Seed{}
	if err := s.api.Get(ctx, client.ObjectKey{Name: s.name}, seed); err != nil {
		return err
	}
	after := seed.DeepCopy()
	after.Status.Gardener = new(gardener(s.name))
	after.Status.KubernetesVersion, after.Status.ClusterIdentity = new("v"+builder.Version), &s.name
	after.Status.ObservedGeneration = seed.Generation
	after.Status.Allocatable = corev1.ResourceList{"shoots": resource.MustParse("1000")}
	after.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
	}
	after.Status.Conditions = conditions(corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy)
	return s.api.Status().Patch(ctx, after, client.StrategicMergeFrom(seed))
}

// renew renews the Lease until the context ends. Gardenlets were not started at the same moment, so each begins at another one.
func (s *simulated) renew(ctx context.Context) {
	timer := time.NewTimer(rand.N(leasePeriod))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := s.renewOnce(ctx); err != nil && ctx.Err() == nil {
			s.fleet.failed.Add(1)
			s.fleet.lastError.Store(&err)
		}
		timer.Reset(leasePeriod)
	}
}

func (s *simulated) renewOnce(ctx context.Context) error {
	seconds := int32(leasePeriod / time.Second)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &s.name, LeaseDurationSeconds: &seconds, RenewTime: new(metav1.NowMicro())}
	if s.leased == nil {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenerSeedLeaseNamespace, Name: s.name}, Spec: spec}
		if err := s.api.Create(ctx, lease); err != nil {
			return err
		}
		s.leased = lease
		return nil
	}
	s.leased.Spec = spec
	return s.api.Update(ctx, s.leased)
}
