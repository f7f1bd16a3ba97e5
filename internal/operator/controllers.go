package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/networkpolicy/general"
	"gardener.cloud/gardener/internal/operator/extension"
	extensioncare "gardener.cloud/gardener/internal/operator/extension/care"
	"gardener.cloud/gardener/internal/operator/extension/installation"
	extensionreference "gardener.cloud/gardener/internal/operator/extension/reference"
	"gardener.cloud/gardener/internal/operator/extension/requiredruntime"
	"gardener.cloud/gardener/internal/operator/extension/requiredvirtual"
	"gardener.cloud/gardener/internal/operator/garden/care"
	"gardener.cloud/gardener/internal/operator/garden/lifecycle"
	"gardener.cloud/gardener/internal/operator/garden/reference"
	"gardener.cloud/gardener/internal/operator/gardenlet"
	"gardener.cloud/gardener/internal/operator/gardenletcharts"
	"gardener.cloud/gardener/internal/operator/group"
	"gardener.cloud/gardener/internal/operator/registrar"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/vpaevictionrequirements"
	"gardener.cloud/gardener/internal/wave"
)

// cacheSyncTimeout is how long the caches of a group may take until its controllers start. The controllers of the virtual garden wait for
// gardener-apiserver in it.
const cacheSyncTimeout = time.Minute

// definitions are the CustomResourceDefinitions that AddResources needs. The garden's own flow deploys them.
var definitions = []string{
	"managedresources.resources.gardener.cloud", "etcds.druid.gardener.cloud",
	"backupbuckets.extensions.gardener.cloud", "backupentries.extensions.gardener.cloud", "dnsrecords.extensions.gardener.cloud",
	"extensions.extensions.gardener.cloud", "verticalpodautoscalers.autoscaling.k8s.io",
}

func controllerOptions() ctrlconfig.Controller {
	return ctrlconfig.Controller{SkipNameValidation: new(true), ReconciliationTimeout: passTimeout, CacheSyncTimeout: cacheSyncTimeout}
}

// AddControllers adds the controllers that always run, and the one that starts and stops the others.
func (o *Operator) AddControllers(_ context.Context) error {
	c := &o.Config.Controllers
	runtimeVersion, err := discovery.NewDiscoveryClientForConfigAndClient(o.GetConfig(), o.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("connect to the runtime cluster: %w", err)
	}
	return errors.Join(
		lifecycle.Add(o.Manager, lifecycle.Values{
			RuntimeAPI: o.RuntimeAPI, RuntimeVersion: runtimeVersion, Connect: o.connect, Discover: discover,
			Gardener: o.Gardener, Images: o.Images, SystemImages: o.SystemImages, Config: o.Config, FlowMetrics: o.Flows, Clock: o.Clock,
			TerminateTLS: o.TerminateTLS,
		}),
		// Both have the same finalizer.
		reference.Add(o.Manager, reference.Values{Referenced: func(ctx context.Context, ref reference.Ref) (bool, error) { //nolint:contextcheck // predicates have no context
			extensions := &operatorv1alpha1.ExtensionList{}
			if err := o.GetCache().List(ctx, extensions); err != nil {
				return false, fmt.Errorf("list Extensions: %w", err)
			}
			return extensionreference.Referenced(extensions.Items, extension.Reference(ref)), nil
		}}),
		extensionreference.Add(o.Manager, extensionreference.Values{
			ConcurrentSyncs: ptr.Deref(c.ExtensionReference.ConcurrentSyncs, 1),
			Referenced: func(ctx context.Context, ref extension.Reference) (bool, error) {
				return reference.Referenced(ctx, o.GetCache(), o.GetAPIReader(), reference.Ref(ref))
			},
		}),
		requiredruntime.Add(o.Manager, requiredruntime.Values{ConcurrentSyncs: ptr.Deref(c.ExtensionRequiredRuntime.ConcurrentSyncs, 1), Clock: o.Clock}),
		installation.Add(o.Manager, installation.Values{
			RuntimeVersion: runtimeVersion, ConcurrentSyncs: ptr.Deref(c.Extension.ConcurrentSyncs, 1), Clock: o.Clock,
		}),
		registrar.Add(o.Manager, registrar.Values{
			NewManager: o.NewManager, NewVirtual: o.NewVirtual, Connection: process.SetConnection(o.Config.VirtualClientConnection),
			AddGarden: o.AddGarden, AddResources: o.AddResources, Definitions: definitions, AddVirtual: o.AddVirtual,
			Garden: group.New("garden", o.Clock), Resources: group.New("resources", o.Clock), Virtual: group.New("virtual", o.Clock),
		}),
	)
}

// AddGarden adds the controllers that run while there is a Garden, to a manager of their own in the runtime cluster.
func (o *Operator) AddGarden(_ context.Context, mgr manager.Manager) error {
	c := &o.Config.Controllers
	return errors.Join(
		general.Add(mgr, general.Values{
			NamespaceSelectors: append(resourcemanager.SeedNamespaces(), c.NetworkPolicy.AdditionalNamespaceSelectors...),
			Networks:           networks(mgr.GetClient()), NetworksOf: &operatorv1alpha1.Garden{}, Cache: mgr.GetCache(),
			Concurrency: ptr.Deref(c.NetworkPolicy.ConcurrentSyncs, 1), FieldOwner: Name,
		}),
	)
}

// networks returns the current address ranges of the runtime cluster.
func networks(runtimeCache client.Reader) func(context.Context) (general.Networks, error) {
	return func(ctx context.Context) (general.Networks, error) {
		gardens := &operatorv1alpha1.GardenList{}
		if err := runtimeCache.List(ctx, gardens); err != nil {
			return general.Networks{}, fmt.Errorf("list Gardens: %w", err)
		}
		var list general.Networks
		for i := range gardens.Items {
			n := &gardens.Items[i].Spec.RuntimeCluster.Networking
			list.Own = append(append(append(list.Own, n.Nodes...), n.Pods...), n.Services...)
			list.Blocked = append(list.Blocked, n.BlockCIDRs...)
		}
		return list, nil
	}
}

// AddResources adds the controllers that run while there is a Garden and its CustomResourceDefinitions are established, to a manager of their own
// in the runtime cluster.
func (o *Operator) AddResources(_ context.Context, mgr manager.Manager) error {
	c := &o.Config.Controllers
	return errors.Join(
		care.Add(mgr, care.Values{
			Healthz: func(ctx context.Context) error {
				return virtualcluster.Healthz(ctx, o.RuntimeAPI, process.SetConnection(o.Config.VirtualClientConnection))
			},
			RuntimeAPI: o.RuntimeAPI, Config: c.GardenCare, Metrics: o.Conditions, Clock: o.Clock,
		}),
		vpaevictionrequirements.Add(mgr, vpaevictionrequirements.Values{
			SeedAPI: o.RuntimeAPI, ConcurrentSyncs: ptr.Deref(c.VPAEvictionRequirements.ConcurrentSyncs, 1), Clock: o.Clock,
		}),
	)
}

// AddVirtual adds the controllers that need the virtual garden, to a manager of their own in the runtime cluster. They run while there is a Garden
// and access to its virtual cluster.
func (o *Operator) AddVirtual(_ context.Context, mgr manager.Manager, virtual cluster.Cluster) error {
	c := &o.Config.Controllers
	virtualAPI, err := o.connect(virtual.GetConfig())
	if err != nil {
		return fmt.Errorf("connect to the virtual garden: %w", err)
	}
	return errors.Join(
		gardenletcharts.Add(mgr, gardenletcharts.Values{
			Virtual: virtual, VirtualAPI: virtualAPI, Chart: o.GardenletChart, Version: o.Gardener.Version, Clock: o.Clock,
			Overwrites: wave.Overwrites{Images: &o.ImageVectorOverwrite, Components: &o.ComponentImageVectorOverwrites},
		}),
		gardenlet.Add(mgr, gardenlet.Values{
			Virtual: virtual, Version: o.Gardener.Version, Image: o.SystemImages.Gardener, ImageVectorOverwrite: o.ImageVectorOverwrite,
			ComponentImageVectorOverwrites: o.ComponentImageVectorOverwrites, ConcurrentSyncs: ptr.Deref(c.GardenletDeployer.ConcurrentSyncs, 1), Clock: o.Clock,
		}),
		requiredvirtual.Add(mgr, requiredvirtual.Values{
			Virtual: virtual, ConcurrentSyncs: ptr.Deref(c.ExtensionRequiredVirtual.ConcurrentSyncs, 1), Clock: o.Clock,
		}),
		extensioncare.Add(mgr, extensioncare.Values{Virtual: virtual, Config: c.ExtensionCare, Clock: o.Clock}),
	)
}

// connect returns a client for the virtual cluster without a cache.
func (o *Operator) connect(config *rest.Config) (client.WithWatch, error) {
	return client.NewWithWatch(rest.AddUserAgent(config, Name), client.Options{Scheme: o.GetScheme()})
}

// discover returns which kinds of objects a cluster serves, as far as it responds.
func discover(config *rest.Config) ([]*metav1.APIResourceList, error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := c.ServerPreferredResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		err = nil
	}
	return served, err
}
