package authorizer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// rule says what clients may do with a resource. The first rule for group, resource and type of the client counts.
type rule struct {
	group, resource string
	kind            graph.Kind
	// only are the types of clients that the rule is for. All, if empty.
	only []client.Type
	// always are verbs that are allowed, whatever the object: creations are checked by the admission of the object.
	always verbs
	// related are verbs that are allowed for objects that lead to the seed or shoot of the client.
	related verbs
	// subresources that may be used like the resource.
	subresources []string
	// namespace is the only one whose objects the rule is for; all if empty.
	namespace template
	// fields and labels select the objects of the client: a list or watch must have all of them.
	fields, labels []selector
	// exceptions are looked at first.
	exceptions []exception
}

// exception is the decision for requests that match all of its conditions. Those that are empty match everything.
type exception struct {
	only      []client.Type
	verbs     verbs
	namespace template
	name      func(of requester, name string) bool
	// subresources says that the exception is also for them.
	subresources bool
	// instead is the rule to go on with. Without one the request is allowed, or not if there is a reason.
	instead *rule
	reason  string
}

// requester is the client that a rule is applied to. Those of seeds have no shoot, and the other way around.
type requester struct {
	kind             client.Type
	seed             string
	namespace, shoot string
}

// template is a text with the placeholders <seed>, <namespace> and <shoot> for the client.
type template string

func (t template) of(r requester) string {
	text := string(t)
	if !strings.Contains(text, "<") {
		return text
	}
	text = strings.ReplaceAll(text, "<seed>", r.seed)
	text = strings.ReplaceAll(text, "<namespace>", r.namespace)
	return strings.ReplaceAll(text, "<shoot>", r.shoot)
}

// selector is a requirement on a field or a label.
type selector struct{ key, value template }

const (
	seedNamespace  template = constants.SeedNamespaceNamePrefix + "<seed>"
	shootNamespace template = "<namespace>"
)

type verbs []string

func (v verbs) has(verb string) bool { return slices.Contains(v, verb) }

// Verbs of requests.
const (
	verbCreate           = "create"
	verbGet              = "get"
	verbList             = "list"
	verbWatch            = "watch"
	verbUpdate           = "update"
	verbPatch            = "patch"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

var (
	read      = verbs{verbGet, verbList, verbWatch}
	change    = verbs{verbUpdate, verbPatch}
	allVerbs  = verbs{verbCreate, verbGet, verbList, verbWatch, verbUpdate, verbPatch, verbDelete, verbDeleteCollection}
	remove    = verbs{verbDelete}
	justAdd   = verbs{verbCreate}
	status    = []string{"status"}
	finalizer = []string{"status", "finalizers"}
)

func all(of ...verbs) verbs { return slices.Concat(of...) }

// named matches objects of one name.
func named(name template) func(requester, string) bool {
	return func(of requester, object string) bool { return object == name.of(of) }
}

// prefixed matches objects whose names begin with a text.
func prefixed(prefix template) func(requester, string) bool {
	return func(of requester, object string) bool { return strings.HasPrefix(object, prefix.of(of)) }
}

// API groups.
const (
	coreGroup           = "core.gardener.cloud"
	operationsGroup     = "operations.gardener.cloud"
	securityGroup       = "security.gardener.cloud"
	seedManagementGroup = "seedmanagement.gardener.cloud"
	certificatesGroup   = "certificates.k8s.io"
	rbacGroup           = "rbac.authorization.k8s.io"
	leaseGroup          = "coordination.k8s.io"
	eventsGroup         = "events.k8s.io"
)

var (
	gardenlet = []client.Type{client.Gardenlet}
	extension = []client.Type{client.Extension}
)

// seedRules returns what the clients of a seed may do.
func seedRules() []rule {
	byLabel := []selector{{constants.PrefixSeedName + "<seed>", "true"}}
	return []rule{
		{group: coreGroup, resource: "backupbuckets", kind: graph.BackupBucket, always: all(justAdd, read), related: all(change, remove), subresources: finalizer},
		{group: coreGroup, resource: "backupentries", kind: graph.BackupEntry, always: all(justAdd, read), related: all(change, remove), subresources: status},
		{
			group: operationsGroup, resource: "bastions", kind: graph.Bastion, always: justAdd,
			related: all(read, change), subresources: status, fields: []selector{{"spec.seedName", "<seed>"}},
		},
		{
			group: certificatesGroup, resource: "certificatesigningrequests", kind: graph.CertificateSigningRequest, only: gardenlet, always: justAdd,
			related: read, subresources: []string{"seedclient"},
		},
		{group: certificatesGroup, resource: "certificatesigningrequests", kind: graph.CertificateSigningRequest, only: extension, related: read},
		{group: coreGroup, resource: "cloudprofiles", kind: graph.CloudProfile, related: read},
		{group: coreGroup, resource: "namespacedcloudprofiles", kind: graph.NamespacedCloudProfile, related: read},
		{group: rbacGroup, resource: "clusterrolebindings", kind: graph.ClusterRoleBinding, only: gardenlet, always: justAdd, related: all(change, verbs{verbGet}), exceptions: []exception{
			{verbs: remove, name: func(of requester, binding string) bool {
				full := graph.BootstrapBindingName(constants.GardenNamespace, of.seed)
				return binding == full || binding == strings.Replace(full, graph.BootstrapServiceAccountName(""), "", 1)
			}},
		}},
		// Without it, RBAC does not let the gardenlet create the binding. For whom it is, package restriction checks.
		{group: rbacGroup, resource: "clusterroles", only: gardenlet, exceptions: []exception{{verbs: verbs{"bind"}, name: named(graph.SeedBootstrapper)}}},
		{group: rbacGroup, resource: "clusterrolebindings", kind: graph.ClusterRoleBinding, only: extension, related: verbs{verbGet}},
		{resource: "configmaps", kind: graph.ConfigMap, always: justAdd, related: all(read, change, remove), exceptions: []exception{
			{verbs: verbs{verbGet}, namespace: constants.GardenerSystemPublicNamespace, name: named(constants.ConfigMapNameGardenerInfo)},
			clusterIdentity,
		}},
		{group: coreGroup, resource: "controllerdeployments", kind: graph.ControllerDeployment, related: read},
		{
			group: coreGroup, resource: "controllerinstallations", kind: graph.ControllerInstallation,
			related: all(read, change), subresources: status, fields: []selector{{"spec.seedRef.name", "<seed>"}},
		},
		{group: coreGroup, resource: "controllerregistrations", kind: graph.ControllerRegistration, always: read},
		{group: securityGroup, resource: "credentialsbindings", kind: graph.CredentialsBinding, related: read},
		{resource: "events", always: verbs{verbCreate, verbPatch}},
		{group: eventsGroup, resource: "events", always: verbs{verbCreate, verbPatch}},
		{group: coreGroup, resource: "exposureclasses", kind: graph.ExposureClass, related: read},
		{group: coreGroup, resource: "internalsecrets", kind: graph.InternalSecret, always: justAdd, related: all(read, change, remove)},
		{group: leaseGroup, resource: "leases", kind: graph.Lease, only: gardenlet, always: justAdd, related: all(read, change)},
		{group: leaseGroup, resource: "leases", kind: graph.Lease, only: extension, always: allVerbs, namespace: seedNamespace},
		{
			// The gardener-operator deploys what is in a Gardenlet: extensions only read it.
			group: seedManagementGroup, resource: "gardenlets", kind: graph.Gardenlet, only: gardenlet, always: justAdd,
			related: all(read, change), namespace: constants.GardenNamespace, subresources: status, fields: []selector{{"metadata.name", "<seed>"}},
		},
		{
			group: seedManagementGroup, resource: "gardenlets", kind: graph.Gardenlet, only: extension, related: read,
			namespace: constants.GardenNamespace, subresources: status, fields: []selector{{"metadata.name", "<seed>"}},
		},
		// A gardenlet deploys what is in a ManagedSeed, with the permissions of an administrator: extensions only read it.
		{group: seedManagementGroup, resource: "managedseeds", kind: graph.ManagedSeed, only: gardenlet, related: all(read, change), subresources: status, labels: byLabel},
		{group: seedManagementGroup, resource: "managedseeds", kind: graph.ManagedSeed, only: extension, related: read, subresources: status, labels: byLabel},
		{resource: "namespaces", kind: graph.Namespace, related: read},
		{group: coreGroup, resource: "projects", kind: graph.Project, related: read},
		{group: coreGroup, resource: "secretbindings", kind: graph.SecretBinding, related: read},
		{resource: "secrets", kind: graph.Secret, always: justAdd, related: all(verbs{verbGet}, change, remove), exceptions: []exception{
			{verbs: read, namespace: seedNamespace},
			{verbs: remove, namespace: "kube-system", name: func(of requester, secret string) bool {
				return secret == graph.BootstrapTokenName(constants.GardenNamespace, of.seed)
			}},
		}},
		{group: securityGroup, resource: "workloadidentities", kind: graph.WorkloadIdentity, related: all(read, verbs{verbCreate, verbPatch}), subresources: []string{"token"}},
		{group: coreGroup, resource: "seeds", kind: graph.Seed, always: justAdd, related: all(read, change, remove), subresources: status, labels: byLabel},
		{resource: "serviceaccounts", kind: graph.ServiceAccount, only: gardenlet, always: justAdd, related: all(verbs{verbGet}, change), exceptions: []exception{
			{verbs: remove, namespace: constants.GardenNamespace, name: named(template(graph.BootstrapServiceAccountName("<seed>")))},
			{namespace: seedNamespace, subresources: true},
			// The gardenlet of the parent requests the token of a ManagedSeed that is bootstrapped with a ServiceAccount.
			{verbs: justAdd, namespace: constants.GardenNamespace, name: prefixed(template(graph.BootstrapServiceAccountName(""))), subresources: true, instead: &rule{
				resource: "serviceaccounts", kind: graph.ServiceAccount, related: justAdd, subresources: []string{"token"},
			}},
		}},
		{resource: "serviceaccounts", kind: graph.ServiceAccount, only: extension, related: verbs{verbGet}},
		{group: coreGroup, resource: "shoots", kind: graph.Shoot, related: all(read, change), subresources: finalizer, labels: byLabel, exceptions: []exception{
			{verbs: verbs{verbGet}, namespace: constants.GardenNamespace, name: named("<seed>")}, // the seed may be a self-hosted shoot
		}},
		// The control plane is restored from it, with all credentials and machines, on another seed.
		{group: coreGroup, resource: "shootstates", kind: graph.ShootState, only: gardenlet, always: justAdd, related: all(read, change, remove)},
		{group: coreGroup, resource: "shootstates", kind: graph.ShootState, only: extension, related: read},
	}
}

// clusterIdentity refuses changes of the ConfigMap with the identity of the garden, which all clients read.
var clusterIdentity = exception{
	verbs: all(change, remove), namespace: "kube-system", name: named(constants.ClusterIdentity), reason: "only gardener-apiserver writes it",
}

// shootRules returns what the clients of a self-hosted shoot may do, other than gardenadm.
func shootRules() []rule {
	byShoot := []selector{{"spec.shootRef.name", "<shoot>"}, {"spec.shootRef.namespace", "<namespace>"}}
	// issuers is how a gardenlet finds the configuration of managed issuers.
	issuers := &rule{
		resource: "secrets", kind: graph.Secret, related: verbs{verbList, verbWatch}, namespace: constants.GardenNamespace,
		labels: []selector{{constants.GardenRole, constants.GardenRoleShootServiceAccountIssuer}},
	}
	return []rule{
		{group: coreGroup, resource: "backupbuckets", kind: graph.BackupBucket, always: justAdd, related: all(read, change, remove), subresources: finalizer, fields: byShoot},
		{group: coreGroup, resource: "backupentries", kind: graph.BackupEntry, always: justAdd, related: all(read, change, remove), subresources: status, fields: byShoot},
		{
			group: operationsGroup, resource: "bastions", kind: graph.Bastion,
			related: all(read, change), namespace: shootNamespace, subresources: status, fields: []selector{{"spec.shootRef.name", "<shoot>"}},
		},
		{
			group: certificatesGroup, resource: "certificatesigningrequests", kind: graph.CertificateSigningRequest, only: gardenlet, always: justAdd,
			related: read, subresources: []string{"shootclient"},
		},
		{group: certificatesGroup, resource: "certificatesigningrequests", kind: graph.CertificateSigningRequest, only: extension, related: read},
		{resource: "configmaps", kind: graph.ConfigMap, always: justAdd, related: all(read, change, remove), exceptions: []exception{clusterIdentity}},
		{group: coreGroup, resource: "controllerdeployments", kind: graph.ControllerDeployment, related: read},
		{group: coreGroup, resource: "controllerinstallations", kind: graph.ControllerInstallation, related: all(read, change), subresources: status, fields: byShoot},
		{group: coreGroup, resource: "controllerregistrations", kind: graph.ControllerRegistration, always: read},
		{resource: "events", always: verbs{verbCreate, verbPatch}},
		{group: eventsGroup, resource: "events", always: verbs{verbCreate, verbPatch}},
		{
			group: seedManagementGroup, resource: "gardenlets", kind: graph.Gardenlet, always: justAdd,
			related: all(read, change), namespace: shootNamespace, subresources: status, fields: []selector{{"metadata.name", graph.SelfHostedPrefix + "<shoot>"}},
		},
		{group: coreGroup, resource: "internalsecrets", kind: graph.InternalSecret, always: justAdd, related: all(read, change, remove)},
		{group: leaseGroup, resource: "leases", kind: graph.Lease, only: gardenlet, always: justAdd, related: all(read, change)},
		{group: leaseGroup, resource: "leases", kind: graph.Lease, only: extension, always: allVerbs, namespace: shootNamespace, exceptions: []exception{
			{namespace: shootNamespace, name: func(of requester, lease string) bool {
				return lease != "" && !strings.HasPrefix(lease, of.shoot+"--")
			}, subresources: true, reason: "its name does not begin with that of the shoot"},
		}},
		{
			group: seedManagementGroup, resource: "managedseeds", kind: graph.ManagedSeed, only: gardenlet,
			related: all(read, change), namespace: shootNamespace, subresources: status, fields: []selector{{"spec.shoot.name", "<shoot>"}},
		},
		{
			group: seedManagementGroup, resource: "managedseeds", kind: graph.ManagedSeed, only: extension,
			related: read, namespace: shootNamespace, subresources: status, fields: []selector{{"spec.shoot.name", "<shoot>"}},
		},
		{resource: "namespaces", kind: graph.Namespace, related: read},
		{group: coreGroup, resource: "projects", kind: graph.Project, related: read},
		{resource: "secrets", kind: graph.Secret, always: justAdd, related: all(read, change, remove), exceptions: []exception{
			{only: gardenlet, verbs: verbs{verbList, verbWatch}, namespace: constants.GardenNamespace, instead: issuers},
			{verbs: read, namespace: "kube-system", name: func(of requester, secret string) bool {
				return secret == graph.BootstrapTokenName(of.namespace, of.shoot)
			}},
			{verbs: read, namespace: "kube-system", name: prefixed(graph.BootstrapTokenPrefix), reason: "it is not the bootstrap token of the shoot"},
		}},
		{group: coreGroup, resource: "seeds", kind: graph.Seed, always: verbs{verbList, verbWatch}, related: verbs{verbGet, verbDelete}, exceptions: []exception{
			{verbs: read, name: func(of requester, seed string) bool { return seed == of.shoot || seed == "" }},
		}},
		{resource: "serviceaccounts", kind: graph.ServiceAccount, only: gardenlet, always: justAdd, related: all(verbs{verbGet}, change), exceptions: []exception{
			{namespace: shootNamespace, name: prefixed("extension-shoot--<shoot>--"), subresources: true},
		}},
		{resource: "serviceaccounts", kind: graph.ServiceAccount, only: extension, related: verbs{verbGet}},
		{group: coreGroup, resource: "shoots", kind: graph.Shoot, related: change, subresources: status, exceptions: []exception{
			{verbs: read, namespace: shootNamespace, name: named("<shoot>")},
		}},
		{group: coreGroup, resource: "shootstates", kind: graph.ShootState, only: gardenlet, always: justAdd, related: all(read, verbs{verbPatch})},
		{group: coreGroup, resource: "shootstates", kind: graph.ShootState, only: extension, related: read},
		{group: securityGroup, resource: "workloadidentities", kind: graph.WorkloadIdentity, related: all(read, verbs{verbCreate, verbPatch}), subresources: []string{"token"}},
	}
}

// gardenadmRules returns what gardenadm may do for a self-hosted shoot.
func gardenadmRules() []rule {
	get := verbs{verbGet}
	return []rule{
		{group: coreGroup, resource: "cloudprofiles", always: get},
		{group: coreGroup, resource: "controllerdeployments", always: get},
		{group: coreGroup, resource: "controllerregistrations", always: get},
		{group: coreGroup, resource: "projects", always: justAdd},
		{resource: "configmaps", always: justAdd, namespace: shootNamespace},
		{resource: "secrets", always: justAdd, namespace: shootNamespace},
		{group: coreGroup, resource: "secretbindings", always: justAdd, namespace: shootNamespace},
		{group: securityGroup, resource: "credentialsbindings", always: justAdd, namespace: shootNamespace},
		{group: securityGroup, resource: "workloadidentities", always: justAdd, namespace: shootNamespace},
		{group: coreGroup, resource: "shoots", always: verbs{verbCreate, verbPatch, "mark-self-hosted"}, namespace: shootNamespace, subresources: status, exceptions: []exception{
			{verbs: verbs{verbPatch}, name: func(of requester, name string) bool { return name != of.shoot }, subresources: true, reason: "it is another shoot"},
		}},
	}
}

// ResourceOf returns the resource whose objects are of a kind.
func ResourceOf(kind graph.Kind) schema.GroupResource {
	rules := seedRules()
	at := slices.IndexFunc(rules, func(r rule) bool { return r.kind == kind && r.resource != "events" })
	return schema.GroupResource{Group: rules[at].group, Resource: rules[at].resource}
}
