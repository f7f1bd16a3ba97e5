package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/etcddruid"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// identityOrigin is the key that says who identified a cluster.
	identityOrigin = "origin"
	// authorityLife is how long the authority of the seed is good for; it replaces itself in time.
	authorityLife = 10 * 365 * 24 * time.Hour
	// serverLife is how long certificates of servers in the seed are good for; they are replaced in time.
	serverLife = 90 * 24 * time.Hour
	// taskTimeout is the end of one task. An API server that gets a dozen kinds at once takes some seconds.
	taskTimeout = 2 * time.Minute
)

// again is how a task is tried again within a run: a webhook or a leader may be away for a moment.
var again = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 4, Jitter: 0.1}

// newFlow returns what makes a cluster a seed.
func (r *reconciler) newFlow(seed *corev1beta1.Seed) (*flow.Flow, error) {
	own := &credentials{}
	scaling := []string{"crds-autoscaler"} // who deploys pods has them scaled
	tasks := []flow.Task{
		{ID: "namespace", Title: "Creating namespace garden", Run: func(ctx context.Context) error {
			return r.apply(ctx, namespace())
		}},
		r.definitions("crds-extensions", "Creating kinds of extensions", crds.Extensions),
		r.definitions("crds-resources", "Creating kinds of the resource manager", crds.Resources),
		r.definitions("crds-druid", "Creating kinds of etcd-druid", crds.Druid),
		r.definitions("crds-machine", "Creating kinds of machines", crds.Machine),
		r.definitions("crds-gateway", "Creating kinds of the Gateway API", crds.Gateway),
		{ID: "priority-classes", Title: "Creating priority classes", Run: func(ctx context.Context) error {
			return r.apply(ctx, priorityclass.Seed()...)
		}},
		{
			ID: "resource-manager", Title: "Deploying gardener-resource-manager",
			After: []string{"authorities", "crds-resources", "priority-classes"}, AfterIfPresent: scaling,
			Run: func(ctx context.Context) error {
				_, objects, err := r.resourceManagerObjects(replicas(seed), own)
				if err != nil {
					return err
				}
				return r.install(ctx, seed, objects...)
			},
		},
		{
			ID: "resource-manager-ready", Title: "Waiting until gardener-resource-manager is ready", After: []string{"resource-manager"},
			Run: func(ctx context.Context) error { return r.awaitDeployment(ctx, resourcemanager.Name) },
		},
		{
			// While nobody answers webhooks, nothing that they are asked about can be created.
			ID: "resource-manager-webhooks", Title: "Registering the webhooks of gardener-resource-manager",
			After: []string{"resource-manager-ready"}, AfterIfPresent: []string{"etcd-druid", "gateway"},
			Run: func(ctx context.Context) error {
				webhooks, _, err := r.resourceManagerObjects(replicas(seed), own)
				if err != nil {
					return err
				}
				return r.apply(ctx, webhooks...)
			},
		},
		{
			ID: "etcd-druid", Title: "Deploying etcd-druid", After: []string{"namespace", "crds-druid", "priority-classes"}, AfterIfPresent: scaling,
			Run: r.deploy(seed, r.etcdDruidObjects),
		},
		{ID: "etcd-druid-ready", Title: "Waiting until etcd-druid is ready", After: []string{"etcd-druid"}, Run: func(ctx context.Context) error {
			return r.awaitDeployment(ctx, etcddruid.Name)
		}},
		{ID: "authorities", Title: "Creating authorities of the seed", After: []string{"namespace"}, Run: func(ctx context.Context) error {
			return r.authorities(ctx, seed, own)
		}},
		{
			ID: "forget-credentials", Title: "Deleting credentials that nothing uses any more",
			After: []string{"resource-manager-ready", "resource-manager-webhooks"},
			Run:   func(ctx context.Context) error { return own.manager.Cleanup(ctx) },
		},
		{
			ID: "gateway", Title: "Deploying the gateway", After: []string{"crds-gateway", "priority-classes"}, AfterIfPresent: scaling,
			Run: func(ctx context.Context) error {
				return r.install(ctx, seed, r.gatewayObjects(seed, replicas(seed))...)
			},
		},
		{ID: "cluster-identity", Title: "Identifying the seed", Run: func(ctx context.Context) error { return r.identify(ctx, seed) }},
	}
	if workload.Autoscaled(seed) {
		tasks = append(tasks,
			r.definitions("crds-autoscaler", "Creating kinds of the Vertical Pod Autoscaler", crds.VerticalPodAutoscaler),
			flow.Task{
				ID: "autoscaler", Title: "Deploying the Vertical Pod Autoscaler", After: []string{"authorities", "crds-autoscaler", "priority-classes"},
				Run: func(ctx context.Context) error {
					objects, err := r.autoscalerObjects(seed, replicas(seed), own)
					if err != nil {
						return err
					}
					return r.install(ctx, seed, objects...)
				},
			})
	} else {
		// It may have been wanted before; the kinds stay, as somebody else may bring an autoscaler.
		tasks = append(tasks, flow.Task{ID: "autoscaler", Title: "Removing the Vertical Pod Autoscaler", Run: r.destroyAutoscaler(seed)})
	}
	if seed.Spec.Backup != nil {
		tasks = append(tasks, flow.Task{ID: "backup-bucket", Title: "Ordering the bucket for backups", Run: func(ctx context.Context) error {
			return r.orderBucket(ctx, seed)
		}})
	}
	return newFlow("Seed reconciliation", tasks)
}

// newDeletion returns what makes a seed an ordinary cluster again. Kinds stay, as somebody may use them otherwise.
func (r *reconciler) newDeletion(seed *corev1beta1.Seed) (*flow.Flow, error) {
	return newFlow("Seed deletion", []flow.Task{
		{ID: "backup-bucket", Title: "Deleting the bucket for backups", Run: func(ctx context.Context) error {
			return r.deleteBucket(ctx, seed)
		}},
		{ID: "etcd-druid", Title: "Deleting etcd-druid", After: []string{"backup-bucket"}, Run: func(ctx context.Context) error {
			return r.destroy(ctx, r.etcdDruidObjects)
		}},
		{ID: "resource-manager", Title: "Deleting gardener-resource-manager", After: []string{"backup-bucket"}, Run: func(ctx context.Context) error {
			return r.destroy(ctx, func(replicas int32) ([]client.Object, error) {
				webhooks, objects, err := r.resourceManagerObjects(replicas, &credentials{server: "any"})
				return append(objects, webhooks...), err
			})
		}},
		{ID: "gateway", Title: "Deleting the gateway", After: []string{"backup-bucket"}, Run: func(ctx context.Context) error {
			return r.destroy(ctx, func(replicas int32) ([]client.Object, error) { return r.gatewayObjects(seed, replicas), nil })
		}},
		{ID: "autoscaler", Title: "Deleting the Vertical Pod Autoscaler", After: []string{"backup-bucket"}, Run: r.destroyAutoscaler(seed)},
		{ID: "cluster-identity", Title: "Forgetting the identity of the seed", After: []string{"backup-bucket"}, Run: r.forget},
	})
}

func newFlow(name string, tasks []flow.Task) (*flow.Flow, error) {
	for i := range tasks {
		tasks[i].Timeout, tasks[i].Retry = taskTimeout, again
	}
	return flow.New(name, tasks...)
}

func (r *reconciler) apply(ctx context.Context, objects ...client.Object) error {
	return kube.Apply(ctx, r.SeedClient, owner, objects...)
}

// install applies a component, and has its pods scaled if the seed does that.
func (r *reconciler) install(ctx context.Context, seed *corev1beta1.Seed, objects ...client.Object) error {
	if workload.Autoscaled(seed) {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	return r.apply(ctx, objects...)
}

// definitions is the task that creates kinds.
func (r *reconciler) definitions(id, title string, read func() ([]*apiextensionsv1.CustomResourceDefinition, error)) flow.Task {
	return flow.Task{ID: id, Title: title, Run: func(ctx context.Context) error {
		definitions, err := read()
		if err != nil {
			return err
		}
		return crds.Deploy(ctx, r.SeedClient, owner, definitions...)
	}}
}

// DeployKinds creates the kinds that controllers of the gardenlet watch, which have to be there before these start.
func DeployKinds(ctx context.Context, seedClient client.WithWatch) error {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	extensions, err := crds.Extensions()
	if err != nil {
		return err
	}
	resources, err := crds.Resources()
	if err != nil {
		return err
	}
	druid, err := crds.Druid()
	if err != nil {
		return err
	}
	return errors.Join(
		crds.Deploy(ctx, seedClient, owner, slices.Concat(extensions, resources, druid)...),
		ensureAutoscalerKinds(ctx, seedClient),
	)
}

// Components are the objects of a seed whose health tells whether it works. No ManagedResource holds them: these engines hold all others.
func Components(seed *corev1beta1.Seed) []client.Object {
	deployment := func(namespace, name string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	components := []client.Object{
		deployment(constants.GardenNamespace, resourcemanager.Name), deployment(constants.GardenNamespace, etcddruid.Name),
		deployment(gateway.Namespace, gateway.Name), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: gateway.Name}},
	}
	if workload.Autoscaled(seed) {
		for _, name := range []string{verticalpodautoscaler.Recommender, verticalpodautoscaler.Updater, verticalpodautoscaler.AdmissionController} {
			components = append(components, deployment(constants.GardenNamespace, name))
		}
	}
	return components
}

func namespace() client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Labels: map[string]string{constants.GardenRole: constants.GardenRoleGarden},
	}}
}

// replicas is how many pods a component has: as many as it takes to outlive a zone.
func replicas(seed *corev1beta1.Seed) int32 {
	if len(seed.Spec.Provider.Zones) > 1 {
		return 2
	}
	return 1
}

// credentials are what one run of the flow has made for the tasks after it.
type credentials struct {
	manager *secrets.Manager
	// server is the name of the Secret for the webhooks of the resource manager, and ca what signed it, as PEM.
	server string
	ca     []byte
	// autoscaler is the name of the Secret for the webhook of the Vertical Pod Autoscaler.
	autoscaler string
}

// resourceManagerObjects renders the resource manager, with its webhooks apart.
func (r *reconciler) resourceManagerObjects(replicas int32, own *credentials) (webhooks, others []client.Object, err error) {
	all, err := resourcemanager.Objects(resourcemanager.Values{
		Namespace: constants.GardenNamespace, Image: r.Images.Gardener, Replicas: replicas, Config: resourcemanager.ForSeed(),
		ServerSecret: own.server, CABundle: own.ca,
	})
	for _, object := range all {
		switch object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			webhooks = append(webhooks, object)
		default:
			others = append(others, object)
		}
	}
	return webhooks, others, err
}

// awaitDeployment waits until a component runs as it was last deployed.
func (r *reconciler) awaitDeployment(ctx context.Context, name string) error {
	return kube.Await(ctx, r.SeedClient, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
		if len(found) == 0 {
			return fmt.Errorf("Deployment %s/%s is not there", constants.GardenNamespace, name)
		}
		return errors.Join(kube.RolledOut(found[0]), kube.Healthy(found[0]))
	}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingFields{"metadata.name": name})
}

func (r *reconciler) etcdDruidObjects(replicas int32) ([]client.Object, error) {
	config := etcddruidconfigv1alpha1.EtcdDruidConfiguration{
		Images: etcddruidconfigv1alpha1.Images{Etcd: r.Images.Etcd, BackupRestore: r.Images.Gardener},
	}
	if c := r.ETCD; c != nil && c.ETCDController != nil && c.ETCDController.Workers != nil {
		config.Controllers.Etcd.ConcurrentSyncs = int(*c.ETCDController.Workers)
	}
	return etcddruid.Objects(etcddruid.Values{Namespace: constants.GardenNamespace, Image: r.Images.Gardener, Replicas: replicas, Config: config})
}

func (r *reconciler) autoscalerObjects(seed *corev1beta1.Seed, replicas int32, own *credentials) ([]client.Object, error) {
	v := verticalpodautoscaler.Values{
		Namespace: constants.GardenNamespace, Images: r.Images.Autoscaler, Replicas: replicas, ServerSecret: own.autoscaler, CABundle: own.ca,
	}
	if workload.Autoscaled(seed) {
		v.Config = &corev1beta1.VerticalPodAutoscaler{
			FeatureGates: seed.Spec.Settings.VerticalPodAutoscaler.FeatureGates, MaxAllowed: seed.Spec.Settings.VerticalPodAutoscaler.MaxAllowed,
		}
	}
	return verticalpodautoscaler.Objects(v)
}

// gatewayObjects are the way into the control planes, with the settings of the Seed for load balancers.
func (r *reconciler) gatewayObjects(seed *corev1beta1.Seed, replicas int32) []client.Object {
	v := gateway.Values{ControllerImage: r.Images.Gardener, ProxyImage: r.Images.HAProxy, Replicas: replicas}
	if s := seed.Spec.Settings; s != nil && s.LoadBalancerServices != nil {
		v.ServiceAnnotations = s.LoadBalancerServices.Annotations
		if policy := s.LoadBalancerServices.ExternalTrafficPolicy; policy != nil {
			v.ExternalTrafficPolicy = *policy
		}
	}
	return gateway.Objects(v)
}

// deploy is a task that applies a component.
func (r *reconciler) deploy(seed *corev1beta1.Seed, objects func(int32) ([]client.Object, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		rendered, err := objects(replicas(seed))
		if err != nil {
			return err
		}
		return r.install(ctx, seed, rendered...)
	}
}

// destroy deletes the objects of a component.
func (r *reconciler) destroy(ctx context.Context, objects func(int32) ([]client.Object, error)) error {
	rendered, err := objects(2) // what only several pods have goes too
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range slices.Backward(rendered) {
		if err := r.SeedClient.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err))
		}
	}
	return errors.Join(errs...)
}

// authorities makes the authority that signs for servers in the seed, and what the servers of this flow need.
func (r *reconciler) authorities(ctx context.Context, seed *corev1beta1.Seed, own *credentials) error {
	manager, err := secrets.New(ctx, secrets.Values{Client: r.SeedClient, Namespace: constants.GardenNamespace, Identity: owner})
	if err != nil {
		return err
	}
	if _, err := manager.Generate(ctx, &secrets.CertificateAuthority{
		Name: constants.SecretNameCASeed, CommonName: "kubernetes", Validity: authorityLife,
	}, secrets.RenewAuthority(), secrets.KeepOld()); err != nil {
		return err
	}
	bundle, ok := manager.Get(constants.SecretNameCASeed, secrets.Bundle)
	if !ok {
		return fmt.Errorf("authority %q has no bundle", constants.SecretNameCASeed)
	}
	server, err := r.serverCertificate(ctx, manager, resourcemanager.Name, resourcemanager.ServerNames(constants.GardenNamespace))
	if err != nil {
		return err
	}
	if workload.Autoscaled(seed) {
		names := verticalpodautoscaler.ServerNames(constants.GardenNamespace)
		autoscaler, err := r.serverCertificate(ctx, manager, verticalpodautoscaler.WebhookService, names)
		if err != nil {
			return err
		}
		own.autoscaler = autoscaler.Name
	}
	own.manager, own.server, own.ca = manager, server.Name, bundle.Data[secrets.DataKeyCertificateBundle]
	return nil
}

// serverCertificate makes the certificate of a server in the seed, which the authority of the seed signs.
func (*reconciler) serverCertificate(ctx context.Context, manager *secrets.Manager, name string, hosts []string) (*corev1.Secret, error) {
	return manager.Generate(ctx, &secrets.Certificate{
		Name: name + "-server", CommonName: name, DNSNames: hosts, Usage: secrets.ServerCert, WithoutCA: true, Validity: serverLife,
	}, secrets.SignedBy(constants.SecretNameCASeed))
}

// identify writes the identity of the seed, unless it has one.
func (r *reconciler) identify(ctx context.Context, seed *corev1beta1.Seed) error {
	garden, err := identity(ctx, r.live)
	if err != nil || garden.Data[constants.ClusterIdentity] == "" {
		return err // a garden without an identity gives none
	}
	own, err := identity(ctx, r.SeedClient)
	if err != nil || own.Name != "" {
		return err
	}
	return r.apply(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity},
		Immutable:  new(true),
		Data: map[string]string{
			constants.ClusterIdentity: seedIdentity(garden.Data[constants.ClusterIdentity], seed.Name), identityOrigin: constants.ClusterIdentityOriginSeed,
		},
	})
}

// forget removes the identity that the seed has as a seed.
func (r *reconciler) forget(ctx context.Context) error {
	own, err := identity(ctx, r.SeedClient)
	if err != nil || own.Data[identityOrigin] != constants.ClusterIdentityOriginSeed {
		return err
	}
	return client.IgnoreNotFound(r.SeedClient.Delete(ctx, own))
}

// seedIdentity is unique in all landscapes if that of the garden is.
func seedIdentity(garden, seed string) string { return garden + "-" + seed + "-seed" }

// bucketName is the BackupBucket of a seed. A seed that is made anew gets a new one.
func bucketName(seed *corev1beta1.Seed) string { return string(seed.UID) }

func (r *reconciler) orderBucket(ctx context.Context, seed *corev1beta1.Seed) error {
	want := backupBucket(seed)
	current := &corev1beta1.BackupBucket{}
	err := r.gardenClient.Get(ctx, client.ObjectKeyFromObject(want), current)
	if apierrors.IsNotFound(err) {
		if err := r.gardenClient.Create(ctx, want); err != nil {
			return fmt.Errorf("create BackupBucket %q: %w", want.Name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read BackupBucket %q: %w", want.Name, err)
	}
	changed := current.DeepCopy()
	changed.Spec.ProviderConfig, changed.Spec.CredentialsRef = want.Spec.ProviderConfig, want.Spec.CredentialsRef
	return patchIfChanged(ctx, r.gardenClient, current, changed)
}

// backupBucket is what a seed needs for its backups.
func backupBucket(seed *corev1beta1.Seed) *corev1beta1.BackupBucket {
	backup := seed.Spec.Backup
	region := seed.Spec.Provider.Region
	if backup.Region != nil {
		region = *backup.Region
	}
	return &corev1beta1.BackupBucket{
		ObjectMeta: metav1.ObjectMeta{Name: bucketName(seed), OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed")),
		}},
		Spec: corev1beta1.BackupBucketSpec{
			Provider:       corev1beta1.BackupBucketProvider{Type: backup.Provider, Region: region},
			ProviderConfig: backup.ProviderConfig.DeepCopy(), CredentialsRef: backup.CredentialsRef.DeepCopy(), SeedName: new(seed.Name),
		},
	}
}

// deleteBucket deletes the bucket, and says so as long as it is there.
func (r *reconciler) deleteBucket(ctx context.Context, seed *corev1beta1.Seed) error {
	bucket := &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: bucketName(seed)}}
	if err := r.gardenClient.Delete(ctx, bucket); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("delete BackupBucket %q: %w", bucket.Name, err)
	}
	buckets := &corev1beta1.BackupBucketList{}
	if err := r.gardenClient.List(ctx, buckets); err != nil {
		return err
	}
	if slices.ContainsFunc(buckets.Items, func(b corev1beta1.BackupBucket) bool { return b.Name == bucket.Name }) {
		return fmt.Errorf("BackupBucket %q is still there", bucket.Name)
	}
	return nil
}
