package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/kube/shard"
	"gardener.cloud/gardener/pkg/errorcode"
)

// world is what is known of a shoot before its flow begins. Flows are composed from it, and it does not change while they run.
type world struct {
	shoot        *corev1beta1.Shoot
	seed         *corev1beta1.Seed
	cloudProfile *corev1beta1.CloudProfile
	project      string
	// namespace is the technical ID.
	namespace string
	// identity is that of the cluster, unique in all landscapes.
	identity string
	// internal and external are the domains of the shoot. They are nil if it has none.
	internal, external *domain
	// provider are the credentials for the infrastructure. They are nil without workers.
	provider *credential
	// extensions are what spec.extensions asks for, and what every shoot gets.
	extensions []extensionOrder
	// stale are Extensions that are there although nobody asks for them any more.
	stale []extensionOrder
	// issuer is the URL of a service account issuer that Gardener serves, if it does.
	issuer string
	// zones are where the control plane is.
	zones []string
	// hasNamespace is whether there is something in the seed yet.
	hasNamespace bool
	// stopped is whether the API server of a hibernated shoot does not run. It does after waking up has failed half way.
	stopped bool
}

// domain is one under which a shoot is reached.
type domain struct {
	// name is the domain, such as "crazy-botany.dev.internal.example.com".
	name string
	// provider is the type of the DNSRecord. The shoot's owner takes care of an unmanaged one.
	provider string
	zone     *string
	// credentials are what the provider needs.
	credentials credential
}

// host is a name in the domain.
func (d *domain) host(prefix string) string { return prefix + "." + d.name }

// extensionOrder is an Extension that a shoot has.
type extensionOrder struct {
	typ               string
	config            *runtime.RawExtension
	reconcile, remove corev1beta1.ControllerResourceLifecycleStrategy
	resource          corev1beta1.ControllerResource
}

// timeout is for how long the extension may work.
func (e extensionOrder) timeout() time.Duration {
	if timeout := e.resource.ReconcileTimeout; timeout != nil {
		return timeout.Duration
	}
	return extensionTimeout
}

func (w *world) workerless() bool { return len(w.shoot.Spec.Provider.Workers) == 0 }

func (w *world) hibernated() bool {
	h := w.shoot.Spec.Hibernation
	return h != nil && h.Enabled != nil && *h.Enabled
}

// sleeps is whether nothing of the control plane runs: the shoot is hibernated, and has been since the last operation.
func (w *world) sleeps() bool { return w.hibernated() && w.shoot.Status.Hibernated && w.stopped }

// settled is whether there may be nodes which the control plane serves now: it is neither made, nor woken up, nor put to sleep.
func (w *world) settled() bool {
	last := w.shoot.Status.LastOperation
	return last != nil && last.Type == corev1beta1.LastOperationTypeReconcile && !w.shoot.Status.Hibernated && !w.hibernated()
}

// observe reads what is known of a shoot.
func (r *reconciler) observe(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) (*world, error) {
	w := &world{shoot: shoot, seed: seed}
	var err error
	if w.project, err = r.projectOf(ctx, shoot); err != nil {
		return nil, err
	}
	if w.namespace = shoot.Status.TechnicalID; w.namespace == "" {
		w.namespace = technicalID(w.project, shoot.Name)
	}
	existing := &corev1.Namespace{}
	if err := r.SeedClient.Get(ctx, client.ObjectKey{Name: w.namespace}, existing); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Namespace %q: %w", w.namespace, err)
	}
	w.hasNamespace = existing.UID != ""
	if owner := existing.Annotations[constants.ShootUIDAnnotation]; w.hasNamespace && owner != "" && owner != string(shoot.UID) {
		return nil, fmt.Errorf("Namespace %q in the seed belongs to another shoot with UID %s", w.namespace, owner)
	}
	if w.hibernated() && shoot.Status.Hibernated {
		if w.stopped, err = r.apiServerStopped(ctx, w.namespace); err != nil {
			return nil, err
		}
	}
	w.zones = chosenZones(existing, shoot, seed)
	if w.cloudProfile, err = r.cloudProfile(ctx, shoot); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	garden := ""
	if own, err := clusterIdentity(ctx, r.live); err != nil {
		return nil, err
	} else if garden = own; garden == "" {
		garden = "unidentified"
	}
	if w.identity = deref(shoot.Status.ClusterIdentity); w.identity == "" {
		w.identity = w.namespace + "-" + string(shoot.UID) + "-" + garden
	}
	if w.internal, w.external, err = r.domains(ctx, w); err != nil && !forced(shoot) {
		return nil, err
	}
	if w.provider, err = r.providerCredentials(ctx, shoot); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	if w.issuer, err = r.managedIssuer(ctx, w); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	return w, r.observeExtensions(ctx, w)
}

// apiServerStopped is whether no API server is wanted in a control plane: it starts before what writes into the cluster, and ends after it.
func (r *reconciler) apiServerStopped(ctx context.Context, namespace string) (bool, error) {
	deployment := &appsv1.Deployment{}
	err := r.SeedClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %q: %w", kubeapiserver.Name, err)
	}
	return err != nil || deref(deployment.Spec.Replicas) == 0, nil
}

// technicalID is how a shoot is called in its seed.
func technicalID(project, shoot string) string {
	return constants.TechnicalIDPrefix + "-" + project + "--" + shoot
}

// projectOf finds whose namespace a shoot is in.
func (r *reconciler) projectOf(ctx context.Context, shoot *corev1beta1.Shoot) (string, error) {
	projects := &corev1beta1.ProjectList{}
	if err := r.live.List(ctx, projects, client.MatchingFields{"spec.namespace": shoot.Namespace}); err != nil {
		return "", fmt.Errorf("find project of namespace %q: %w", shoot.Namespace, err)
	}
	if len(projects.Items) == 0 {
		return "", fmt.Errorf("namespace %q belongs to no project", shoot.Namespace)
	}
	return projects.Items[0].Name, nil
}

// chosenZones are the zones of a control plane. A choice once made stays; more are added if it is to outlive a zone.
func chosenZones(namespace *corev1.Namespace, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) []string {
	var zones []string
	for zone := range strings.SplitSeq(namespace.Annotations[zonesAnnotation], ",") {
		if zone != "" {
			zones = append(zones, zone)
		}
	}
	want := 1
	if tolerance(shoot) == corev1beta1.FailureToleranceTypeZone {
		want = 3
	}
	all := slices.Clone(seed.Spec.Provider.Zones)
	if len(all) > 0 { // shoots begin at different ones
		start := int(shard.Of(shoot.UID, uint64(len(all)))) //nolint:gosec // less than the number of zones
		all = slices.Concat(all[start:], all[:start])
	}
	for _, zone := range all {
		if len(zones) < want && !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	return zones
}

// cloudProfile reads the profile of a shoot. One of a project stands there like one of the landscape.
func (r *reconciler) cloudProfile(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfile, error) {
	ref := shoot.Spec.CloudProfile
	if ref == nil && shoot.Spec.CloudProfileName != nil {
		ref = &corev1beta1.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: *shoot.Spec.CloudProfileName}
	}
	if ref == nil {
		return nil, errors.New("spec.cloudProfile: not set")
	}
	profile := &corev1beta1.CloudProfile{}
	if ref.Kind != constants.CloudProfileReferenceKindNamespacedCloudProfile {
		if err := r.gardenClient.Get(ctx, client.ObjectKey{Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("read CloudProfile %q: %w", ref.Name, err)
		}
		return profile, nil
	}
	own := &corev1beta1.NamespacedCloudProfile{}
	if err := r.gardenClient.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, own); err != nil {
		return nil, fmt.Errorf("read NamespacedCloudProfile %q: %w", ref.Name, err)
	}
	profile.ObjectMeta, profile.Spec = *own.ObjectMeta.DeepCopy(), *own.Status.CloudProfileSpec.DeepCopy()
	return profile, nil
}

// domains finds out under which names a shoot is reached, and who serves them.
func (r *reconciler) domains(ctx context.Context, w *world) (internal, external *domain, err error) {
	if dns := w.seed.Spec.DNS.Internal; dns != nil {
		credentials, err := r.credential(ctx, w.shoot, dns.CredentialsRef)
		if err != nil {
			return nil, nil, fmt.Errorf("internal domain: %w", err)
		}
		internal = &domain{name: w.shoot.Name + "." + w.project + "." + dns.Domain, provider: dns.Type, zone: dns.Zone, credentials: credentials}
	}
	dns := w.shoot.Spec.DNS
	if dns == nil || dns.Domain == nil {
		return internal, nil, nil
	}
	external = &domain{name: *dns.Domain, provider: constants.DNSProviderUnmanaged}
	for _, provider := range dns.Providers {
		if provider.Primary == nil || !*provider.Primary {
			continue
		}
		external.provider = deref(provider.Type)
		ref := corev1.ObjectReference{Kind: plainSecret, Namespace: w.shoot.Namespace, Name: deref(provider.SecretName)}
		if provider.CredentialsRef != nil {
			ref.Kind, ref.Name = provider.CredentialsRef.Kind, provider.CredentialsRef.Name
		}
		if ref.Name == "" || external.provider == constants.DNSProviderUnmanaged {
			break
		}
		external.credentials, err = r.credential(ctx, w.shoot, ref)
		if err != nil {
			return nil, nil, fmt.Errorf("domain %q: %w", external.name, err)
		}
		return internal, external, nil
	}
	if external.provider != constants.DNSProviderUnmanaged {
		return internal, external, r.defaultDomain(ctx, w, external)
	}
	if len(dns.Providers) == 0 {
		return internal, external, r.defaultDomain(ctx, w, external)
	}
	return internal, external, nil
}

// defaultDomain finds the credentials for a domain that the landscape offers. One that nobody offers is the owner's.
func (r *reconciler) defaultDomain(ctx context.Context, w *world, d *domain) error {
	for _, offer := range w.seed.Spec.DNS.Defaults {
		if !strings.HasSuffix(d.name, "."+offer.Domain) {
			continue
		}
		credentials, err := r.credential(ctx, w.shoot, offer.CredentialsRef)
		if err != nil {
			return fmt.Errorf("domain %q: %w", d.name, err)
		}
		d.provider, d.zone, d.credentials = offer.Type, offer.Zone, credentials
		return nil
	}
	offers := &corev1.SecretList{}
	// The controller manager copies them to where the gardenlet may read them.
	if err := r.live.List(ctx, offers, client.InNamespace(constants.SeedNamespaceNamePrefix+w.seed.Name),
		client.MatchingLabels{constants.GardenRole: constants.GardenRoleDefaultDomain}); err != nil {
		return fmt.Errorf("list default domains: %w", err)
	}
	for _, offer := range offers.Items {
		if base := offer.Annotations[constants.DNSDomain]; base == "" || !strings.HasSuffix(d.name, "."+base) {
			continue
		}
		d.provider, d.credentials = offer.Annotations[constants.DNSProvider], credential{kind: plainSecret, data: offer.Data}
		if zone := offer.Annotations[constants.DNSZone]; zone != "" {
			d.zone = &zone
		}
	}
	return nil
}

// providerCredentials reads what the infrastructure is reached with. A shoot without workers has none.
func (r *reconciler) providerCredentials(ctx context.Context, shoot *corev1beta1.Shoot) (*credential, error) {
	var ref corev1.ObjectReference
	switch {
	case shoot.Spec.CredentialsBindingName != nil:
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := r.live.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}, binding); err != nil {
			return nil, fmt.Errorf("read CredentialsBinding %q: %w", *shoot.Spec.CredentialsBindingName, err)
		}
		ref = binding.CredentialsRef
	case shoot.Spec.SecretBindingName != nil:
		binding := &corev1beta1.SecretBinding{}
		if err := r.live.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.SecretBindingName}, binding); err != nil {
			return nil, fmt.Errorf("read SecretBinding %q: %w", *shoot.Spec.SecretBindingName, err)
		}
		ref.Kind, ref.Namespace, ref.Name = plainSecret, cmp.Or(binding.SecretRef.Namespace, shoot.Namespace), binding.SecretRef.Name
	default:
		return nil, nil //nolint:nilnil // some infrastructures need none
	}
	c, err := r.credential(ctx, shoot, ref)
	if apierrors.IsNotFound(err) {
		err = errorcode.With(err, corev1beta1.ErrorInfraUnauthenticated)
	}
	if err != nil {
		return nil, fmt.Errorf("credentials for the infrastructure: %w", err)
	}
	return &c, nil
}

// observeExtensions finds out which Extensions a shoot has: those that it asks for, those that are on by default and not declined, and those
// that are left from before.
func (r *reconciler) observeExtensions(ctx context.Context, w *world) error {
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := r.gardenClient.List(ctx, registrations); err != nil {
		return fmt.Errorf("list ControllerRegistrations: %w", err)
	}
	w.extensions = extensionsOf(w.shoot, registrations.Items)
	if !w.hasNamespace {
		return nil
	}
	there := &extensionsv1alpha1.ExtensionList{}
	if err := r.SeedClient.List(ctx, there, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("list Extensions: %w", err)
	}
	w.stale = staleExtensions(there.Items, w.extensions, registrations.Items)
	return nil
}

// staleExtensions are the Extensions that are there and not wanted. They go as they are registered, if they still are.
func staleExtensions(there []extensionsv1alpha1.Extension, wanted []extensionOrder, registrations []corev1beta1.ControllerRegistration) []extensionOrder {
	var stale []extensionOrder
	for _, e := range there {
		if slices.ContainsFunc(wanted, func(order extensionOrder) bool { return order.typ == e.Name }) {
			continue
		}
		order := orderOf(corev1beta1.ControllerResource{Kind: "Extension", Type: e.Name})
		for _, registration := range registrations {
			for _, resource := range registration.Spec.Resources {
				if resource.Kind == order.resource.Kind && resource.Type == order.typ && (resource.Primary == nil || *resource.Primary) {
					order = orderOf(resource)
				}
			}
		}
		stale = append(stale, order)
	}
	return stale
}

// orderOf is what is known of an Extension from its registration.
func orderOf(resource corev1beta1.ControllerResource) extensionOrder {
	order := extensionOrder{
		typ: resource.Type, resource: resource,
		reconcile: corev1beta1.AfterKubeAPIServer, remove: corev1beta1.BeforeKubeAPIServer,
	}
	if lifecycle := resource.Lifecycle; lifecycle != nil {
		order.reconcile, order.remove = cmp.Or(deref(lifecycle.Reconcile), order.reconcile), cmp.Or(deref(lifecycle.Delete), order.remove)
	}
	return order
}

func extensionsOf(shoot *corev1beta1.Shoot, registrations []corev1beta1.ControllerRegistration) []extensionOrder {
	wanted := map[string]extensionOrder{}
	for _, registration := range registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind != "Extension" || resource.Primary != nil && !*resource.Primary {
				continue
			}
			asked := slices.IndexFunc(shoot.Spec.Extensions, func(e corev1beta1.Extension) bool { return e.Type == resource.Type })
			order := orderOf(resource)
			if asked >= 0 {
				e := shoot.Spec.Extensions[asked]
				if e.Disabled != nil && *e.Disabled {
					continue
				}
				order.config = e.ProviderConfig
			} else if !slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeShoot) {
				continue
			}
			if len(shoot.Spec.Provider.Workers) == 0 && (resource.WorkerlessSupported == nil || !*resource.WorkerlessSupported) {
				continue
			}
			wanted[resource.Type] = order
		}
	}
	orders := make([]extensionOrder, 0, len(wanted))
	for _, order := range wanted {
		orders = append(orders, order)
	}
	slices.SortFunc(orders, func(a, b extensionOrder) int { return strings.Compare(a.typ, b.typ) })
	return orders
}

// serviceAddress is that of the Service "kubernetes" in a shoot: the first of its range.
func serviceAddress(shoot *corev1beta1.Shoot) (net.IP, error) {
	if shoot.Spec.Networking == nil || shoot.Spec.Networking.Services == nil {
		return nil, nil
	}
	ip, _, err := net.ParseCIDR(*shoot.Spec.Networking.Services)
	if err != nil {
		return nil, fmt.Errorf("spec.networking.services: %w", err)
	}
	if four := ip.To4(); four != nil {
		ip = four
	}
	ip[len(ip)-1]++
	return ip, nil
}

// clusterIdentity reads the identity of a cluster. It is empty if there is none.
func clusterIdentity(ctx context.Context, c client.Reader) (string, error) {
	configMap := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: constants.ClusterIdentity}, configMap)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read ConfigMap %q: %w", constants.ClusterIdentity, err)
	}
	return configMap.Data[constants.ClusterIdentity], nil
}

func deref[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}
