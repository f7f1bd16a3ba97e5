package lifecycle

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/gardenercontrollermanager"
	"gardener.cloud/gardener/internal/component/gardenerdiscoveryserver"
	"gardener.cloud/gardener/internal/component/gardenerinfo"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/gardenerscheduler"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/managedresource"
)

// rbacResource is the ManagedResource with the namespaces and roles of the virtual cluster.
const rbacResource = "garden-system-virtual"

// component is one of Gardener in the virtual cluster.
type component struct {
	name string
	// objects are those for the runtime cluster, targets those for the virtual cluster.
	objects, targets func(ctx context.Context) ([]client.Object, error)
}

// runtimeResource and virtualResource are the names of the ManagedResources of a component.
func runtimeResource(component string) string { return component + "-runtime" }
func virtualResource(component string) string { return component + "-virtual" }

// components are those of Gardener besides gardener-apiserver, which all of them need.
func (s *state) components() []component {
	list := []component{s.admissionController(), s.controllerManager(), s.scheduler()}
	if s.garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer != nil {
		list = append(list, s.discoveryServer())
	}
	return list
}

// gardenerTasks deploy the components of Gardener. Most of them crash until gardener-apiserver serves, so they come after it.
func (s *state) gardenerTasks() []flow.Task {
	tasks := []flow.Task{
		flow.Do("garden-system", "Deploying namespaces and roles of the virtual cluster", func(ctx context.Context) error {
			return s.applyManaged(ctx, rbacResource, "", gardenrbac.Virtual()...)
		}),
		flow.Await(stage.PodsTimeout, "garden-system-applied", "Waiting until namespaces and roles of the virtual cluster are applied", func(ctx context.Context) error {
			return s.run.ManagedApplied(ctx, rbacResource)
		}, "garden-system", "resource-manager-ready"),
		flow.Await(stage.PodsTimeout, "gardener-apiserver", "Deploying gardener-apiserver", s.deployAPIServer, "garden-system-applied", "tokens", "etcd-main"),
		flow.Await(stage.PodsTimeout, "gardener-apiserver-ready", "Waiting until gardener-apiserver serves", s.awaitAPIServer,
			"gardener-apiserver"),
		flow.Do("gardener-info", "Publishing the version of Gardener", s.publishInfo, "gardener-apiserver-ready"),
	}
	for _, c := range s.components() {
		tasks = append(tasks,
			flow.Await(stage.PodsTimeout, c.name, "Deploying "+c.name, func(ctx context.Context) error { return s.deploy(ctx, c) }, "gardener-apiserver-ready"),
			flow.Await(stage.PodsTimeout, c.name+"-ready", "Waiting until "+c.name+" is ready", func(ctx context.Context) error { return s.await(ctx, c.name) }, c.name),
		)
	}
	encryption := s.encryptionTasks()
	return slices.Concat(tasks, encryption, s.identityKeyTasks(encryption))
}

// applyManaged writes a ManagedResource. Its class is that of a resource manager: "seed" for the one of the runtime cluster, empty for the one of the
// virtual cluster.
func (s *state) applyManaged(ctx context.Context, name, class string, objects ...client.Object) error {
	packed, err := managedresource.Objects(s.RuntimeAPI.Scheme(), managedresource.Values{
		Namespace: constants.GardenNamespace, Name: name, Class: class,
		Labels: map[string]string{constants.CareConditionType: string(operatorv1alpha1.VirtualComponentsHealthy)},
	}, objects...)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, s.RuntimeAPI, fieldManager, packed...)
}

// deploy writes both ManagedResources of a component. Pods without permissions in the virtual cluster would crash, so that these come first.
func (s *state) deploy(ctx context.Context, c component) error {
	targets, err := c.targets(ctx)
	if err != nil {
		return err
	}
	if err := s.applyManaged(ctx, virtualResource(c.name), "", targets...); err != nil {
		return err
	}
	if err := s.run.ManagedApplied(ctx, virtualResource(c.name)); err != nil {
		return err
	}
	objects, err := c.objects(ctx)
	if err != nil {
		return err
	}
	return s.applyManaged(ctx, runtimeResource(c.name), resourcemanager.ClassSeed, objects...)
}

// await waits until both ManagedResources of a component are applied, and its pods rolled out and healthy.
func (s *state) await(ctx context.Context, name string) error {
	return flow.Parallel(ctx,
		func(ctx context.Context) error { return s.run.ManagedApplied(ctx, virtualResource(name)) },
		func(ctx context.Context) error { return s.managedHealthy(ctx, runtimeResource(name)) },
	)
}

// managedHealthy waits until the objects of a ManagedResource are applied, rolled out and healthy.
func (s *state) managedHealthy(ctx context.Context, name string) error {
	return stage.AwaitOne(ctx, s.RuntimeAPI, constants.GardenNamespace, name, &resourcesv1alpha1.ManagedResourceList{}, func(mr *resourcesv1alpha1.ManagedResource) error {
		for _, check := range []func(*resourcesv1alpha1.ManagedResource) error{managedresource.Applied, managedresource.RolledOut, managedresource.Healthy} {
			if err := check(mr); err != nil {
				return err
			}
		}
		return nil
	})
}

// virtual is how pods of Gardener work in the virtual cluster.
func (s *state) virtual() (*gardenerprocess.Virtual, error) {
	kubeconfig, err := s.genericKubeconfig()
	if err != nil {
		return nil, err
	}
	return &gardenerprocess.Virtual{GenericKubeconfig: kubeconfig, TrafficDistribution: s.source.TrafficDistribution()}, nil
}

// apiServerValues are those of gardener-apiserver, without the address of its Service.
func (s *state) apiServerValues(ctx context.Context) (gardenerapiserver.Values, error) {
	v, of := gardenerapiserver.Values{}, instance.VirtualGarden
	set, err := s.set.All()
	if err != nil {
		return v, err
	}
	virtual, err := s.virtual()
	if err != nil {
		return v, err
	}
	encryption, err := s.gardenEncryption(ctx)
	if err != nil {
		return v, err
	}
	files, err := values.ReadGardenerAPIServerFiles(ctx, s.RuntimeAPI, s.garden)
	if err != nil {
		return v, err
	}
	identityKey, err := s.identityKey(ctx, set)
	if err != nil {
		return v, err
	}
	config := s.garden.Spec.VirtualCluster.Gardener.GardenerAPIServer
	return gardenerapiserver.Values{
		Namespace: constants.GardenNamespace, Image: s.SystemImages.Gardener, Replicas: s.source.APIServerReplicas(),
		ClusterIdentity: s.garden.Spec.VirtualCluster.Gardener.ClusterIdentity,
		EtcdServers:     []string{etcd.URL(of, etcd.Main)},
		EtcdSecret:      set.Name(credentials.EtcdClient), EtcdCA: set.BundleName(constants.SecretNameCAETCD),
		Certificate: set.Name(credentials.GardenerAPIServer), CA: set.Bundle(operatorv1alpha1.SecretNameCAGardener),
		Encryption: encryption, Config: config, Files: files,
		WorkloadIdentity: &gardenerapiserver.WorkloadIdentity{
			Issuer: s.source.WorkloadIdentityIssuer(), KeySecret: identityKey,
		},
		Autoscaled: values.Autoscaled(s.garden),
		Virtual: &gardenerapiserver.Virtual{
			Virtual: *virtual, KubernetesVersion: s.garden.Spec.VirtualCluster.Kubernetes.Version,
		},
	}, nil
}

// deployAPIServer writes both ManagedResources of gardener-apiserver. The virtual cluster has the address of its Service, which is created first.
func (s *state) deployAPIServer(ctx context.Context) error {
	v, err := s.apiServerValues(ctx)
	if err != nil {
		return err
	}
	service := gardenerapiserver.Service(v)
	if err := kube.Apply(ctx, s.RuntimeAPI, fieldManager, service); err != nil {
		return err
	}
	current := &corev1.Service{}
	if err := s.RuntimeAPI.Get(ctx, client.ObjectKeyFromObject(service), current); err != nil {
		return fmt.Errorf("read Service %q: %w", service.Name, err)
	}
	address, err := netip.ParseAddr(current.Spec.ClusterIP)
	if err != nil {
		return fmt.Errorf("address of Service %q: %w", service.Name, err)
	}
	v.Virtual.ClusterIP = address
	return s.deploy(ctx, component{
		name:    gardenerapiserver.Name,
		objects: func(context.Context) ([]client.Object, error) { return gardenerapiserver.Objects(v) },
		targets: func(context.Context) ([]client.Object, error) { return gardenerapiserver.TargetObjects(v) },
	})
}

// awaitAPIServer waits until gardener-apiserver runs, and the virtual cluster serves its API.
func (s *state) awaitAPIServer(ctx context.Context) error {
	if err := s.await(ctx, gardenerapiserver.Name); err != nil {
		return err
	}
	virtual, err := s.run.Target.Client(ctx)
	if err != nil {
		return err
	}
	return gardenerapiserver.AwaitServed(ctx, virtual)
}

func (s *state) admissionController() component {
	of := func(context.Context) (gardeneradmissioncontroller.Values, error) {
		set, err := s.set.All()
		if err != nil {
			return gardeneradmissioncontroller.Values{}, err
		}
		virtual, err := s.virtual()
		return gardeneradmissioncontroller.Values{
			Namespace: constants.GardenNamespace, Image: s.SystemImages.Gardener, Replicas: s.source.Replicas(),
			Config:      gardeneradmissioncontroller.Configuration(s.garden.Spec.VirtualCluster.Gardener.GardenerAdmissionController),
			Certificate: set.Name(credentials.AdmissionController), ClientCA: set.BundleName(operatorv1alpha1.SecretNameCAGardener),
			CABundle: set.Bundle(operatorv1alpha1.SecretNameCAGardener), Autoscaled: values.Autoscaled(s.garden), Virtual: virtual,
		}, err
	}
	return rendered(gardeneradmissioncontroller.Name, of, gardeneradmissioncontroller.Objects, gardeneradmissioncontroller.TargetObjects)
}

func (s *state) controllerManager() component {
	of := func(context.Context) (gardenercontrollermanager.Values, error) {
		virtual, err := s.virtual()
		return gardenercontrollermanager.Values{
			Namespace: constants.GardenNamespace, Image: s.SystemImages.Gardener, Replicas: s.source.Replicas(),
			Config:     gardenercontrollermanager.Configuration(s.garden.Spec.VirtualCluster.Gardener.GardenerControllerManager),
			Autoscaled: values.Autoscaled(s.garden), Virtual: virtual,
		}, err
	}
	return rendered(gardenercontrollermanager.Name, of, gardenercontrollermanager.Objects, gardenercontrollermanager.TargetObjects)
}

func (s *state) scheduler() component {
	of := func(context.Context) (gardenerscheduler.Values, error) {
		virtual, err := s.virtual()
		return gardenerscheduler.Values{
			Namespace: constants.GardenNamespace, Image: s.SystemImages.Gardener, Replicas: s.source.Replicas(),
			Config:     gardenerscheduler.Configuration(s.garden.Spec.VirtualCluster.Gardener.GardenerScheduler),
			Autoscaled: values.Autoscaled(s.garden), Virtual: virtual,
		}, err
	}
	return rendered(gardenerscheduler.Name, of, gardenerscheduler.Objects, gardenerscheduler.TargetObjects)
}

// rendered returns a component whose objects are rendered from the same values.
func rendered[V any](
	name string, values func(context.Context) (V, error), objects func(V) ([]client.Object, error), targets func(V) []client.Object,
) component {
	return component{
		name: name,
		objects: func(ctx context.Context) ([]client.Object, error) {
			v, err := values(ctx)
			if err != nil {
				return nil, err
			}
			return objects(v)
		},
		targets: func(ctx context.Context) ([]client.Object, error) {
			v, err := values(ctx)
			if err != nil {
				return nil, err
			}
			return targets(v), nil
		},
	}
}

func (s *state) discoveryServer() component {
	of := func(ctx context.Context) (gardenerdiscoveryserver.Values, error) {
		v := gardenerdiscoveryserver.Values{}
		set, err := s.set.All()
		if err != nil {
			return v, err
		}
		kubeconfig, err := s.genericKubeconfig()
		if err != nil {
			return v, err
		}
		host := s.source.DiscoveryHost()
		keys := set.BundleSecret(operatorv1alpha1.SecretNameWorkloadIdentityKey)
		if keys == nil {
			return v, fmt.Errorf("credential %q has no bundle", operatorv1alpha1.SecretNameWorkloadIdentityKey)
		}
		documents, err := gardenerdiscoveryserver.WorkloadIdentitySecret(constants.GardenNamespace, host, keys)
		if err != nil {
			return v, err
		}
		certificates := &corev1.SecretList{}
		if err := s.RuntimeAPI.List(ctx, certificates, client.InNamespace(constants.GardenNamespace),
			client.MatchingLabels{constants.GardenRole: constants.GardenRoleGardenWildcardCert}); err != nil {
			return v, fmt.Errorf("list Secrets with certificates of the garden: %w", err)
		}
		certificate := gardenerdiscoveryserver.Certificate(s.garden, host, certificates.Items, s.Clock.Now())
		if certificate == "" {
			certificate = set.Name(credentials.DiscoveryServer)
		}
		return gardenerdiscoveryserver.Values{
			Namespace: constants.GardenNamespace, Image: s.SystemImages.Gardener, Replicas: s.source.Replicas(), Host: host, Certificate: certificate,
			WorkloadIdentity: documents, GenericKubeconfig: kubeconfig, Autoscaled: values.Autoscaled(s.garden),
		}, nil
	}
	return rendered(gardenerdiscoveryserver.Name, of, gardenerdiscoveryserver.Objects, gardenerdiscoveryserver.TargetObjects)
}

// publishInfo writes the ConfigMap gardener-info.
func (s *state) publishInfo(ctx context.Context) error {
	virtual, err := s.run.Target.Client(ctx)
	if err != nil {
		return err
	}
	info, err := gardenerinfo.ConfigMap(gardenerinfo.APIServer{Version: s.Gardener.Version, WorkloadIdentityIssuerURL: s.source.WorkloadIdentityIssuer()})
	if err != nil {
		return err
	}
	return kube.Apply(ctx, virtual, fieldManager, info)
}
