package care

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// tries is how many nodes are asked whether they are reached: one may be on its way out.
	tries = 3
	// tryTimeout is for how long one of them may take to answer.
	tryTimeout = 5 * time.Second
)

// cached lets an API server answer from its cache, which is as new as the next look needs it. The client writes into it, so that each list
// has its own.
func cached() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// look reads the state of a control plane.
func (r *reconciler) look(ctx context.Context, shoot *corev1beta1.Shoot) (*observation, error) {
	namespace := client.InNamespace(shoot.Status.TechnicalID)
	deployments, etcds, resources, statefulSets := &appsv1.DeploymentList{}, &druidv1alpha1.EtcdList{}, &resourcesv1alpha1.ManagedResourceList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, etcds, resources, statefulSets} {
		if err := r.seedClient.List(ctx, list, namespace); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	seen := &observation{deployments: deployments.Items, etcds: etcds.Items, resources: resources.Items, statefulSets: statefulSets.Items}
	credentials := listOf("Secret") // their labels say enough
	if err := r.SeedReader.List(ctx, credentials, namespace, client.MatchingLabels{"manager-identity": "gardenlet"}); err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	seen.credentials = credentials.Items
	if err := r.extensions(ctx, shoot, seen); err != nil {
		return nil, err
	}
	if hibernated(shoot) {
		r.shoots.drop(client.ObjectKeyFromObject(shoot))
		return seen, nil
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		machines := &machinev1alpha1.MachineDeploymentList{}
		if err := r.SeedReader.List(ctx, machines, namespace); err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("list MachineDeployments: %w", err)
		}
		seen.machines = machines.Items
	}
	r.ask(ctx, shoot, seen)
	return seen, nil
}

// listOf is a list of the metadata of objects of the core group.
func listOf(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}

// ask asks the API server.
func (r *reconciler) ask(ctx context.Context, shoot *corev1beta1.Shoot, seen *observation) {
	var access Access
	if access, seen.unavailable = r.access(ctx, shoot, seen.credentials); seen.unavailable != nil {
		return
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if seen.unavailable = access.Healthz(probe); seen.unavailable != nil {
		return
	}
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	seen.access = access
	seen.webhooksUnknown = seen.readWebhooks(read)
	if err := seen.readConversions(read); err != nil {
		logf.FromContext(ctx).V(1).Info("Failed reading kinds in the shoot", "reason", err.Error()) // what is known of them stays
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		if seen.nodesUnknown = seen.readNodes(read); seen.nodesUnknown == nil {
			seen.unreachable = reach(ctx, access, seen.nodes) // long lists take nothing from its time
		}
	}
}

// access returns the access to a shoot with the newest credentials.
func (r *reconciler) access(ctx context.Context, shoot *corev1beta1.Shoot, existing []metav1.PartialObjectMetadata) (Access, error) {
	var newest *metav1.PartialObjectMetadata
	for i := range existing {
		c := &existing[i]
		if c.Labels[secrets.LabelKeyName] == credentials.GardenletAccess && (newest == nil || c.Labels[secrets.LabelKeyIssuedAtTime] >= newest.Labels[secrets.LabelKeyIssuedAtTime]) {
			newest = c
		}
	}
	if newest == nil {
		return nil, errors.New("there is no access to the API server yet")
	}
	return r.shoots.get(client.ObjectKeyFromObject(shoot), newest.UID, func() ([]byte, error) {
		secret := &corev1.Secret{}
		if err := r.SeedReader.Get(ctx, client.ObjectKeyFromObject(newest), secret); err != nil {
			return nil, fmt.Errorf("read Secret %q: %w", newest.Name, err)
		}
		return secret.Data[secrets.DataKeyKubeconfig], nil
	})
}

func (o *observation) readWebhooks(ctx context.Context) error {
	mutators, validators := &admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := errors.Join(o.access.List(ctx, mutators, cached()), o.access.List(ctx, validators, cached())); err != nil {
		return fmt.Errorf("list webhooks in the shoot: %w", err)
	}
	o.mutating, o.validating = mutators.Items, validators.Items
	return nil
}

// readConversions finds the kinds of users that are stored in several versions, and are converted by a webhook.
func (o *observation) readConversions(ctx context.Context) error {
	kinds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := o.access.List(ctx, kinds, cached()); err != nil {
		return fmt.Errorf("list CustomResourceDefinitions in the shoot: %w", err)
	}
	o.conversions = []string{}
	for i := range kinds.Items {
		kind := &kinds.Items[i]
		if c := kind.Spec.Conversion; len(kind.Status.StoredVersions) > 1 && c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			o.conversions = append(o.conversions, kind.Name)
		}
	}
	slices.Sort(o.conversions)
	return nil
}

func (o *observation) readNodes(ctx context.Context) error {
	nodes, leases, configs := &corev1.NodeList{}, &coordinationv1.LeaseList{}, listOf("Secret")
	system := client.InNamespace(metav1.NamespaceSystem)
	if err := errors.Join(
		o.access.List(ctx, nodes, cached()), o.access.List(ctx, leases, cached(), system),
		o.access.List(ctx, configs, cached(), system, client.MatchingLabels{constants.GardenRole: constants.GardenRoleOperatingSystemConfig}),
	); err != nil {
		return fmt.Errorf("read nodes: %w", err)
	}
	o.nodes, o.leases, o.configs = nodes.Items, leases.Items, configs.Items
	return nil
}

// reach returns why the API server does not get through to any of the first nodes, or nil if it does, or if there are none that should
// answer. One answer shows that there is a tunnel.
func reach(ctx context.Context, access Access, nodes []corev1.Node) error {
	var err error
	asked := 0
	for i := range nodes {
		if asked == tries {
			break
		}
		if !ready(&nodes[i]) {
			continue
		}
		asked++
		try, cancel := context.WithTimeout(ctx, tryTimeout)
		err = access.ReachNode(try, nodes[i].Name)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// extensions reads what extensions say about the health of a shoot, and which of them live.
func (r *reconciler) extensions(ctx context.Context, shoot *corev1beta1.Shoot, seen *observation) error {
	for _, list := range []client.ObjectList{
		&extensionsv1alpha1.ControlPlaneList{}, &extensionsv1alpha1.ExtensionList{}, &extensionsv1alpha1.InfrastructureList{},
		&extensionsv1alpha1.NetworkList{}, &extensionsv1alpha1.WorkerList{}, &extensionsv1alpha1.ContainerRuntimeList{},
	} {
		if err := r.seedClient.List(ctx, list, client.InNamespace(shoot.Status.TechnicalID)); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		seen.addExtensions(list)
	}
	if len(seen.reports) == 0 || !r.Config.StaleExtensionHealthChecks.Enabled {
		return nil
	}
	installations, registrations := &corev1beta1.ControllerInstallationList{}, &corev1beta1.ControllerRegistrationList{}
	for _, list := range []client.ObjectList{installations, registrations} {
		if err := r.gardenClient.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.SeedReader.List(ctx, leases, cached(), client.MatchingFields{"metadata.name": extension.HeartbeatLease}); err != nil {
		return fmt.Errorf("list heartbeats of extensions: %w", err)
	}
	for i := range seen.reports {
		report := &seen.reports[i]
		if name := installationFor(report, r.SeedName, installations.Items, registrations.Items); name != "" {
			report.heartbeat = heartbeat(leases.Items, extensionNamespacePrefix+name)
		}
	}
	return nil
}

// extensionNamespacePrefix is what the name of an extension's namespace starts with. That of its ControllerInstallation follows.
const extensionNamespacePrefix = "extension-"

// installationFor finds which ControllerInstallation reports what it says. It is empty if the extension came by another way.
func installationFor(r *report, seed string, installations []corev1beta1.ControllerInstallation, registrations []corev1beta1.ControllerRegistration) string {
	for i := range installations {
		ci := &installations[i]
		if ci.Spec.SeedRef == nil || ci.Spec.SeedRef.Name != seed {
			continue
		}
		index := slices.IndexFunc(registrations, func(reg corev1beta1.ControllerRegistration) bool { return reg.Name == ci.Spec.RegistrationRef.Name })
		if index >= 0 && slices.ContainsFunc(registrations[index].Spec.Resources, func(c corev1beta1.ControllerResource) bool {
			return c.Kind == r.kind && c.Type == r.typ && (c.Primary == nil || *c.Primary)
		}) {
			return ci.Name
		}
	}
	return ""
}

// heartbeat is when an extension has last said that it lives. An extension that never did has done so at the beginning of time.
func heartbeat(leases []coordinationv1.Lease, namespace string) *time.Time {
	at := time.Time{}
	for i := range leases {
		if leases[i].Namespace == namespace && leases[i].Spec.RenewTime != nil {
			at = leases[i].Spec.RenewTime.Time
		}
	}
	return &at
}

// tidyShoot deletes pods in the shoot that are in the way, and changes webhooks that are, if that is wanted.
func (r *reconciler) tidyShoot(ctx context.Context, seen *observation) error {
	if seen.access == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var errs []error
	if r.Config.WebhookRemediatorEnabled != nil && *r.Config.WebhookRemediatorEnabled {
		errs = append(errs, seen.remediate(ctx))
	}
	if seen.nodesUnknown == nil && len(seen.nodes) > 0 {
		errs = append(errs, seen.collect(ctx, r.Clock.Now()))
	}
	return errors.Join(errs...)
}

// collect deletes pods of system components that are in the way. Those that failed are few, and of the others the metadata says enough.
func (o *observation) collect(ctx context.Context, now time.Time) error {
	system, failed, all := client.InNamespace(metav1.NamespaceSystem), &corev1.PodList{}, listOf("Pod")
	if err := errors.Join(
		o.access.List(ctx, failed, cached(), system, client.MatchingFields{"status.phase": string(corev1.PodFailed)}), o.access.List(ctx, all, cached(), system),
	); err != nil {
		return fmt.Errorf("list pods of system components: %w", err)
	}
	for i := range all.Items {
		failed.Items = append(failed.Items, corev1.Pod{ObjectMeta: all.Items[i].ObjectMeta})
	}
	var errs []error
	for i := range failed.Items {
		if pod := &failed.Items[i]; stale(pod, now) {
			logf.FromContext(ctx).Info("Deleting stale pod in the shoot", "pod", pod.Name, "reason", pod.Status.Reason)
			errs = append(errs, client.IgnoreNotFound(o.access.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})))
		}
	}
	return errors.Join(errs...)
}

// warning is what people find at a configuration that was changed.
const warning = "Gardener has changed webhooks of this configuration: while their server did not answer, or was slow, the cluster could not " +
	"have woken up, or nodes could not have joined. Leave out the namespace kube-system and cluster-wide resources, or let webhooks fail open."

// remediate changes webhooks that are in the way of operations.
func (o *observation) remediate(ctx context.Context) error {
	var errs []error
	for i := range o.mutating {
		c := &o.mutating[i]
		errs = append(errs, change(ctx, o.access, c, func() []webhook { return mutating(c) }))
	}
	for i := range o.validating {
		c := &o.validating[i]
		errs = append(errs, change(ctx, o.access, c, func() []webhook { return validating(c) }))
	}
	return errors.Join(errs...)
}

func change(ctx context.Context, shoot client.Client, config client.Object, webhooks func() []webhook) error {
	if ours(config) || vouched(config) {
		return nil
	}
	before, changed := config.DeepCopyObject().(client.Object), false //nolint:forcetypeassert // a copy has its original's type
	for _, w := range webhooks() {
		changed = w.remediate() || changed
	}
	if !changed {
		return nil
	}
	annotations := config.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[constants.GardenerWarning] = warning
	config.SetAnnotations(annotations)
	logf.FromContext(ctx).Info("Changing webhooks in the shoot that are in the way of operations", "configuration", config.GetName())
	if err := shoot.Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change webhook configuration %q in the shoot: %w", config.GetName(), err)
	}
	return nil
}
