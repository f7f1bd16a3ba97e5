package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/operations"
	"gardener.cloud/gardener/internal/validation/security"
	"gardener.cloud/gardener/internal/validation/seedmanagement"
	"gardener.cloud/gardener/internal/validation/settings"
)

const (
	unknown = "<unknown>"
	pending = "<pending>"
)

// rules are the functions of a kind, typed.
type rules[T any] struct {
	create                   func(ctx context.Context, obj *T)
	update                   func(ctx context.Context, obj, old *T)
	canonicalize             func(obj *T)
	validate                 func(obj *T) field.ErrorList
	validateUpdate, onStatus func(obj, old *T) field.ErrorList
	rolledOut                func(obj, old *T) bool
	warnings                 func(obj *T, settings Settings) []string
	operation                func(obj *T, operation string) effect
	fields                   map[string]func(obj *T) string
	cells, afterAge          func(obj *T) []any
}

// with gives a kind its type and its functions.
func with[T, L any, PT interface {
	*T
	runtime.Object
}, PL interface {
	*L
	runtime.Object
}](k kind, r rules[T]) *kind {
	k.newObject = func() runtime.Object { return PT(new(T)) }
	k.newList = func() runtime.Object { return PL(new(L)) }
	typed := func(obj runtime.Object) *T { return (*T)(obj.(PT)) }
	k.validate = func(obj runtime.Object) field.ErrorList { return r.validate(typed(obj)) }
	k.validateUpdate = func(obj, old runtime.Object) field.ErrorList { return r.validateUpdate(typed(obj), typed(old)) }
	k.cells = func(runtime.Object) []any { return nil }
	if r.cells != nil {
		k.cells = func(obj runtime.Object) []any { return r.cells(typed(obj)) }
	}
	if r.afterAge != nil {
		k.afterAge = func(obj runtime.Object) []any { return r.afterAge(typed(obj)) }
	}
	if r.create != nil {
		k.prepareCreate = func(ctx context.Context, obj runtime.Object) { r.create(ctx, typed(obj)) }
	}
	if r.update != nil {
		k.prepareUpdate = func(ctx context.Context, obj, old runtime.Object) { r.update(ctx, typed(obj), typed(old)) }
	}
	if r.canonicalize != nil {
		k.canonicalize = func(obj runtime.Object) { r.canonicalize(typed(obj)) }
	}
	if r.onStatus != nil {
		k.validateStatus = func(obj, old runtime.Object) field.ErrorList { return r.onStatus(typed(obj), typed(old)) }
	}
	if r.rolledOut != nil {
		k.rolledOut = func(obj, old runtime.Object) bool { return r.rolledOut(typed(obj), typed(old)) }
	}
	if r.warnings != nil {
		k.warnings = func(obj runtime.Object, settings Settings) []string { return r.warnings(typed(obj), settings) }
	}
	if r.operation != nil {
		k.operation = func(obj runtime.Object, operation string) effect { return r.operation(typed(obj), operation) }
	}
	k.fields = map[string]func(runtime.Object) string{}
	for path, value := range r.fields {
		k.fields[path] = func(obj runtime.Object) string { return value(typed(obj)) }
	}
	return &k
}

// printed returns the columns of a table: Name, those given, Age. A star marks those for wide tables only, a tilde those that are
// plain text; all others have the format "name", as clients know them.
func printed(names ...string) []metav1.TableColumnDefinition {
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."}}
	for _, name := range names {
		column := metav1.TableColumnDefinition{Name: strings.TrimRight(name, "*~"), Type: "string", Format: "name"}
		if strings.Contains(name, "*") {
			column.Priority = 1
		}
		if strings.Contains(name, "~") {
			column.Format = ""
		}
		column.Description = descriptions[column.Name]
		columns = append(columns, column)
	}
	return append(columns, age)
}

// age is the last column of a table.
var age = metav1.TableColumnDefinition{Name: "Age", Type: "date", Description: "Time since the creation of the object."}

// descriptions say what columns show. A column of the same name shows the same in all tables.
var descriptions = map[string]string{
	"APIServer":        "Whether the API server of the cluster answers.",
	"APIVersion":       "API version of the credentials.",
	"Audiences":        "Audiences of the tokens.",
	"Bucket":           "Bucket that has the backups.",
	"CloudProfile":     "Profile of the infrastructure.",
	"Cluster":          "Cluster that the extension is installed for.",
	"Cluster Lifetime": "How long clusters may exist.",
	"Control":          "Whether the control plane is healthy.",
	"Creator":          "Who created the project.",
	"Data":             "Number of entries.",
	"Expires":          "Time until it is deleted if there is no further heartbeat.",
	"Extension States": "Number of states of extensions.",
	"Gardener Data":    "Number of entries of Gardener itself.",
	"Gardener Version": "Version of Gardener that worked on it last.",
	"Handler":          "What exposes the API servers.",
	"Healthy":          "Whether what is installed is healthy.",
	"Heartbeat":        "Time since the last heartbeat.",
	"Hibernation":      "Whether the cluster is hibernated.",
	"Installed":        "Whether everything is installed.",
	"IP":               "Address of the host.",
	"Issuer":           "URL of the issuer of tokens.",
	"K8S Version":      "Version of Kubernetes.",
	"Kind":             "Kind of the credentials.",
	"Last Operation":   "What was done last, and how far it is.",
	"Name":             "Namespace and name of the credentials.",
	"Namespace":        "Namespace of the project.",
	"Nodes":            "Whether all nodes are ready.",
	"Observability":    "Whether monitoring and logging are healthy.",
	"OCI Repository":   "Where the chart comes from.",
	"Operation":        "State of the last operation.",
	"Owner":            "Owner of the project.",
	"Parent Kind":      "Kind of the profile that this one extends.",
	"Parent Name":      "Profile that this one extends.",
	"Pending":          "Replica that is worked on, and why.",
	"Progress":         "Progress of the last operation, in percent.",
	"Progressing":      "Whether a rollout is under way.",
	"Provider":         "Type of the provider.",
	"Purpose":          "What the cluster is for.",
	"Ready":            "Replicas that are ready, of those wanted.",
	"Reconciled":       "Whether the gardenlet was deployed as wanted.",
	"Region":           "Region of the infrastructure.",
	"Registration":     "Registration of the extension.",
	"Resources":        "Kinds and types that the extension looks after.",
	"Scope":            "What the quota counts for.",
	"Secret":           "Namespace and name of the secret.",
	"Seed":             "Seed that is responsible.",
	"Shoot":            "Shoot that it belongs to.",
	"Status":           "State of the object as a whole.",
	"Sub":              "Subject of the tokens.",
	"System":           "Whether the system components are healthy.",
	"Type":             "Type of the object.",
	"Valid":            "Whether the extension can be installed.",
	"Version":          "Version of the gardenlet.",
}

var (
	inCore           = corev1beta1.SchemeGroupVersion.WithKind
	inSecurity       = securityv1alpha1.SchemeGroupVersion.WithKind
	inSeedManagement = seedmanagementv1alpha1.SchemeGroupVersion.WithKind
	inOperations     = operationsv1alpha1.SchemeGroupVersion.WithKind
	inSettings       = settingsv1alpha1.SchemeGroupVersion.WithKind
	all              = []string{"all"}
)

// kinds are all kinds that are served. Some of their rules depend on feature gates.
func kinds(options core.Options) []*kind {
	list := slices.Concat(extensionKinds(), profileKinds(options), projectKinds(), shootKinds(options), seedKinds(), backupKinds(),
		operationKinds(), seedManagementKinds(options))
	for _, k := range list {
		k.singular = strings.ToLower(k.gvk.Kind)
	}
	return list
}

func extensionKinds() []*kind {
	return []*kind{
		with[corev1beta1.ControllerDeployment, corev1beta1.ControllerDeploymentList](kind{
			gvk: inCore("ControllerDeployment"), also: []string{gardencorev1.SchemeGroupVersion.Version}, plural: "controllerdeployments",
			shortNames: []string{"ctrldeploy"}, categories: all, generation: true, columns: printed(),
		}, rules[corev1beta1.ControllerDeployment]{
			validate: func(d *corev1beta1.ControllerDeployment) field.ErrorList {
				v1, errs := toV1(d)
				return append(errs, core.ValidateControllerDeployment(v1)...)
			},
			validateUpdate: func(d, old *corev1beta1.ControllerDeployment) field.ErrorList {
				v1, errs := toV1(d)
				oldV1, _ := toV1(old)
				return append(errs, core.ValidateControllerDeploymentUpdate(v1, oldV1)...)
			},
		}),
		with[corev1beta1.ControllerRegistration, corev1beta1.ControllerRegistrationList](kind{
			gvk: inCore("ControllerRegistration"), plural: "controllerregistrations",
			shortNames: []string{"ctrlreg"}, categories: all, generation: true, columns: printed("Resources"),
		}, rules[corev1beta1.ControllerRegistration]{
			validate: core.ValidateControllerRegistration, validateUpdate: core.ValidateControllerRegistrationUpdate,
			cells: func(r *corev1beta1.ControllerRegistration) []any {
				var resources []string
				for _, resource := range r.Spec.Resources {
					resources = append(resources, resource.Kind+"/"+resource.Type)
				}
				return []any{strings.Join(resources, ", ")}
			},
		}),
		with[corev1beta1.ControllerInstallation, corev1beta1.ControllerInstallationList](kind{
			gvk: inCore("ControllerInstallation"), plural: "controllerinstallations", shortNames: []string{"ctrlinst"}, categories: all,
			status: true, generation: true, indexed: []string{"spec.seedRef.name"},
			columns: printed("Registration", "Cluster", "Valid", "Installed", "Healthy", "Progressing"),
		}, rules[corev1beta1.ControllerInstallation]{
			validate: core.ValidateControllerInstallation, validateUpdate: core.ValidateControllerInstallationUpdate,
			fields: map[string]func(*corev1beta1.ControllerInstallation) string{
				"spec.registrationRef.name": func(i *corev1beta1.ControllerInstallation) string { return i.Spec.RegistrationRef.Name },
				"spec.seedRef.name":         func(i *corev1beta1.ControllerInstallation) string { return get(i.Spec.SeedRef).Name },
				"spec.shootRef.name":        func(i *corev1beta1.ControllerInstallation) string { return get(i.Spec.ShootRef).Name },
				"spec.shootRef.namespace":   func(i *corev1beta1.ControllerInstallation) string { return get(i.Spec.ShootRef).Namespace },
			},
			cells: func(i *corev1beta1.ControllerInstallation) []any {
				cluster := unknown
				if ref := i.Spec.ShootRef; ref != nil {
					cluster = "Shoot/" + ref.Namespace + "/" + ref.Name
				} else if ref := i.Spec.SeedRef; ref != nil {
					cluster = "Seed/" + ref.Name
				}
				c := i.Status.Conditions
				return []any{
					i.Spec.RegistrationRef.Name, cluster,
					condition(c, "Valid"), condition(c, "Installed"), condition(c, "Healthy"), condition(c, "Progressing"),
				}
			},
		}),
	}
}

func profileKinds(options core.Options) []*kind {
	return []*kind{
		with[corev1beta1.CloudProfile, corev1beta1.CloudProfileList](kind{
			gvk: inCore("CloudProfile"), unconditional: true, plural: "cloudprofiles", shortNames: []string{"cprofile", "cpfl"}, status: true, columns: printed("Provider"),
		}, rules[corev1beta1.CloudProfile]{
			create:       func(_ context.Context, p *corev1beta1.CloudProfile) { dropUnusable(&p.Spec, time.Now()) },
			update:       func(_ context.Context, p, old *corev1beta1.CloudProfile) { dropCapabilities(p, old) },
			canonicalize: fillArchitectures,
			validate: func(p *corev1beta1.CloudProfile) field.ErrorList {
				return core.ValidateCloudProfile(p, time.Now(), options)
			},
			validateUpdate: func(p, old *corev1beta1.CloudProfile) field.ErrorList {
				return core.ValidateCloudProfileUpdate(p, old, time.Now(), options)
			},
			onStatus: func(p, old *corev1beta1.CloudProfile) field.ErrorList {
				return core.ValidateStatusMetadata(&p.ObjectMeta, &old.ObjectMeta)
			},
			cells: func(p *corev1beta1.CloudProfile) []any { return []any{p.Spec.Type} },
		}),
		with[corev1beta1.NamespacedCloudProfile, corev1beta1.NamespacedCloudProfileList](kind{
			gvk: inCore("NamespacedCloudProfile"), unconditional: true, plural: "namespacedcloudprofiles", shortNames: []string{"nsprofile", "nscpfl"},
			namespaced: true, status: true, generation: true, columns: printed("Parent Name", "Parent Kind"),
		}, rules[corev1beta1.NamespacedCloudProfile]{
			create:       func(_ context.Context, p *corev1beta1.NamespacedCloudProfile) { dropExpired(&p.Spec, time.Now()) },
			canonicalize: canonicalNamespacedCloudProfile,
			validate: func(p *corev1beta1.NamespacedCloudProfile) field.ErrorList {
				return core.ValidateNamespacedCloudProfile(p, options)
			},
			validateUpdate: func(p, old *corev1beta1.NamespacedCloudProfile) field.ErrorList {
				return core.ValidateNamespacedCloudProfileUpdate(p, old, options)
			},
			cells: func(p *corev1beta1.NamespacedCloudProfile) []any {
				return []any{p.Spec.Parent.Name, p.Spec.Parent.Kind}
			},
		}),
		with[corev1beta1.ExposureClass, corev1beta1.ExposureClassList](kind{
			gvk: inCore("ExposureClass"), plural: "exposureclasses", shortNames: []string{"expclass", "expcls"}, columns: printed("Handler"),
		}, rules[corev1beta1.ExposureClass]{
			validate: core.ValidateExposureClass, validateUpdate: core.ValidateExposureClassUpdate,
			cells: func(c *corev1beta1.ExposureClass) []any { return []any{c.Handler} },
		}),
		with[settingsv1alpha1.OpenIDConnectPreset, settingsv1alpha1.OpenIDConnectPresetList](kind{
			gvk: inSettings("OpenIDConnectPreset"), plural: "openidconnectpresets", shortNames: []string{"oidcps"}, namespaced: true,
			columns: printed("Issuer"),
		}, rules[settingsv1alpha1.OpenIDConnectPreset]{
			validate: settings.ValidateOpenIDConnectPreset, validateUpdate: settings.ValidateOpenIDConnectPresetUpdate,
			cells: func(p *settingsv1alpha1.OpenIDConnectPreset) []any { return []any{p.Spec.Server.IssuerURL} },
		}),
		with[settingsv1alpha1.ClusterOpenIDConnectPreset, settingsv1alpha1.ClusterOpenIDConnectPresetList](kind{
			gvk: inSettings("ClusterOpenIDConnectPreset"), plural: "clusteropenidconnectpresets", shortNames: []string{"coidcps"},
			columns: printed("Issuer"),
		}, rules[settingsv1alpha1.ClusterOpenIDConnectPreset]{
			validate: settings.ValidateClusterOpenIDConnectPreset, validateUpdate: settings.ValidateClusterOpenIDConnectPresetUpdate,
			cells: func(p *settingsv1alpha1.ClusterOpenIDConnectPreset) []any { return []any{p.Spec.Server.IssuerURL} },
		}),
	}
}

func projectKinds() []*kind {
	return []*kind{
		with[corev1beta1.Project, corev1beta1.ProjectList](kind{
			gvk: inCore("Project"), unconditional: true, plural: "projects", status: true, generation: true,
			columns: printed("Namespace", "Status", "Owner", "Creator"), indexed: []string{"spec.namespace"},
		}, rules[corev1beta1.Project]{
			validate: core.ValidateProject, validateUpdate: core.ValidateProjectUpdate, onStatus: core.ValidateProjectStatusUpdate,
			fields: map[string]func(*corev1beta1.Project) string{
				"spec.namespace": func(p *corev1beta1.Project) string { return get(p.Spec.Namespace) },
			},
			cells: func(p *corev1beta1.Project) []any {
				return []any{
					or(get(p.Spec.Namespace), unknown), or(string(p.Status.Phase), unknown),
					or(get(p.Spec.Owner).Name, unknown), or(get(p.Spec.CreatedBy).Name, unknown),
				}
			},
		}),
		with[corev1beta1.Plant, corev1beta1.PlantList](kind{
			gvk: inCore("Plant"), plural: "plants", shortNames: []string{"pl"}, namespaced: true, status: true, generation: true,
			columns: printed("Provider", "Region", "K8S Version", "APIServer", "Nodes"),
		}, rules[corev1beta1.Plant]{
			validate: core.ValidatePlant, validateUpdate: core.ValidatePlantUpdate, onStatus: core.ValidatePlantStatusUpdate,
			cells: func(p *corev1beta1.Plant) []any {
				info, c := get(p.Status.ClusterInfo), p.Status.Conditions
				return []any{
					or(info.Cloud.Type, unknown), or(info.Cloud.Region, unknown), or(info.Kubernetes.Version, unknown),
					condition(c, "APIServerAvailable"), condition(c, "EveryNodeReady"),
				}
			},
		}),
		with[corev1beta1.Quota, corev1beta1.QuotaList](kind{
			gvk: inCore("Quota"), unconditional: true, plural: "quotas", shortNames: []string{"squota"}, namespaced: true, columns: printed("Scope", "Cluster Lifetime"),
		}, rules[corev1beta1.Quota]{
			validate: core.ValidateQuota, validateUpdate: core.ValidateQuotaUpdate,
			cells: func(q *corev1beta1.Quota) []any {
				lifetime := "<unspecified>"
				if days := q.Spec.ClusterLifetimeDays; days != nil {
					lifetime = fmt.Sprintf("%d days", *days)
				}
				return []any{q.Spec.Scope.APIVersion + "." + q.Spec.Scope.Kind, lifetime}
			},
		}),
		with[corev1beta1.SecretBinding, corev1beta1.SecretBindingList](kind{
			gvk: inCore("SecretBinding"), unconditional: true, plural: "secretbindings", shortNames: []string{"sb"}, namespaced: true, columns: printed("Secret", "Provider"),
		}, rules[corev1beta1.SecretBinding]{
			validate: core.ValidateSecretBinding, validateUpdate: core.ValidateSecretBindingUpdate,
			cells: func(b *corev1beta1.SecretBinding) []any {
				return []any{b.SecretRef.Namespace + "/" + b.SecretRef.Name, or(get(b.Provider).Type, "<none>")}
			},
		}),
		with[securityv1alpha1.CredentialsBinding, securityv1alpha1.CredentialsBindingList](kind{
			gvk: inSecurity("CredentialsBinding"), plural: "credentialsbindings", shortNames: []string{"cb"}, namespaced: true,
			columns: printed("Provider~", "APIVersion", "Kind", "Name"),
		}, rules[securityv1alpha1.CredentialsBinding]{
			validate: security.ValidateCredentialsBinding, validateUpdate: security.ValidateCredentialsBindingUpdate,
			cells: func(b *securityv1alpha1.CredentialsBinding) []any {
				ref := b.CredentialsRef
				return []any{b.Provider.Type, ref.APIVersion, ref.Kind, ref.Namespace + "/" + ref.Name}
			},
		}),
		with[securityv1alpha1.WorkloadIdentity, securityv1alpha1.WorkloadIdentityList](kind{
			gvk: inSecurity("WorkloadIdentity"), plural: "workloadidentities", shortNames: []string{"wi"}, namespaced: true,
			subresources: workloadIdentitySubresources,
			columns:      printed("Sub", "Type~", "Audiences*"),
		}, rules[securityv1alpha1.WorkloadIdentity]{
			create: func(_ context.Context, w *securityv1alpha1.WorkloadIdentity) {
				w.Status.Sub = strings.Join([]string{"gardener.cloud", "workloadidentity", w.Namespace, w.Name, string(w.UID)}, ":")
			},
			update:   func(_ context.Context, w, old *securityv1alpha1.WorkloadIdentity) { w.Status = old.Status },
			validate: security.ValidateWorkloadIdentity, validateUpdate: security.ValidateWorkloadIdentityUpdate,
			cells: func(w *securityv1alpha1.WorkloadIdentity) []any {
				return []any{w.Status.Sub, w.Spec.TargetSystem.Type, strings.Join(w.Spec.Audiences, ",")}
			},
		}),
		with[corev1beta1.InternalSecret, corev1beta1.InternalSecretList](kind{
			gvk: inCore("InternalSecret"), unconditional: true, plural: "internalsecrets", shortNames: []string{"ins"}, namespaced: true, columns: internalSecretColumns(),
		}, rules[corev1beta1.InternalSecret]{
			create:   func(_ context.Context, s *corev1beta1.InternalSecret) { mergeStringData(s) },
			update:   func(_ context.Context, s, _ *corev1beta1.InternalSecret) { mergeStringData(s) },
			validate: core.ValidateInternalSecret, validateUpdate: core.ValidateInternalSecretUpdate,
			fields: map[string]func(*corev1beta1.InternalSecret) string{
				"type": func(s *corev1beta1.InternalSecret) string { return string(s.Type) },
			},
			cells: func(s *corev1beta1.InternalSecret) []any { return []any{string(s.Type), len(s.Data)} },
		}),
	}
}

func shootKinds(options core.Options) []*kind {
	return []*kind{
		with[corev1beta1.Shoot, corev1beta1.ShootList](kind{
			gvk: inCore("Shoot"), plural: "shoots", categories: all, namespaced: true, status: true, generation: true,
			subresources: shootSubresources, indexed: []string{"spec.seedName", "status.seedName", "spec.cloudProfile.Name"},
			columns: printed("CloudProfile", "Provider", "Region", "Seed*", "K8S Version", "Hibernation", "Last Operation", "Status", "Purpose*",
				"Gardener Version*", "APIServer*", "Control*", "Observability*", "Nodes*", "System*"),
		}, rules[corev1beta1.Shoot]{
			canonicalize: canonicalShoot,
			validate:     func(s *corev1beta1.Shoot) field.ErrorList { return core.ValidateShoot(s, options) },
			validateUpdate: func(s, old *corev1beta1.Shoot) field.ErrorList {
				return core.ValidateShootUpdate(s, old, options)
			},
			onStatus:  core.ValidateShootStatusUpdate,
			rolledOut: shootRolledOut, warnings: rotationWarnings, operation: shootOperation,
			fields: map[string]func(*corev1beta1.Shoot) string{
				"spec.seedName":          func(s *corev1beta1.Shoot) string { return get(s.Spec.SeedName) },
				"status.seedName":        func(s *corev1beta1.Shoot) string { return get(s.Status.SeedName) },
				"spec.cloudProfileName":  func(s *corev1beta1.Shoot) string { return get(s.Spec.CloudProfileName) },
				"spec.cloudProfile.Name": func(s *corev1beta1.Shoot) string { return get(s.Spec.CloudProfile).Name },
				"spec.cloudProfile.Kind": func(s *corev1beta1.Shoot) string { return get(s.Spec.CloudProfile).Kind },
			},
			cells: shootCells,
		}),
	}
}

func seedKinds() []*kind {
	return []*kind{
		with[corev1beta1.Seed, corev1beta1.SeedList](kind{
			gvk: inCore("Seed"), unconditional: true, plural: "seeds", status: true, generation: true,
			columns: append(printed("Status", "Last Operation", "Provider", "Region"), versionColumns...),
		}, rules[corev1beta1.Seed]{
			canonicalize: func(s *corev1beta1.Seed) {
				metav1.SetMetaDataLabel(&s.ObjectMeta, constants.SeedProvider, s.Spec.Provider.Type)
				metav1.SetMetaDataLabel(&s.ObjectMeta, constants.SeedRegion, s.Spec.Provider.Region)
			},
			validate: core.ValidateSeed, validateUpdate: core.ValidateSeedUpdate, onStatus: core.ValidateSeedStatusUpdate,
			operation: fixed[corev1beta1.Seed](map[string]effect{
				constants.GardenerOperationReconcile:               taken,
				constants.GardenerOperationRenewKubeconfig:         counted,
				constants.SeedOperationRenewGardenAccessSecrets:    counted,
				constants.SeedOperationRenewWorkloadIdentityTokens: counted,
			}),
			cells: func(s *corev1beta1.Seed) []any {
				return []any{seedStatus(s), operationText(s.Status.LastOperation), s.Spec.Provider.Type, s.Spec.Provider.Region}
			},
			afterAge: func(s *corev1beta1.Seed) []any {
				return []any{or(get(s.Status.Gardener).Version, unknown), or(get(s.Status.KubernetesVersion), unknown)}
			},
		}),
	}
}

func backupKinds() []*kind {
	return []*kind{
		with[corev1beta1.ShootState, corev1beta1.ShootStateList](kind{
			gvk: inCore("ShootState"), plural: "shootstates", categories: all, namespaced: true, generation: true,
			columns: printed("Gardener Data~", "Extension States~"),
		}, rules[corev1beta1.ShootState]{
			validate: core.ValidateShootState, validateUpdate: core.ValidateShootStateUpdate,
			cells: func(s *corev1beta1.ShootState) []any { return []any{len(s.Spec.Gardener), len(s.Spec.Extensions)} },
		}),
		with[corev1beta1.BackupBucket, corev1beta1.BackupBucketList](kind{
			gvk: inCore("BackupBucket"), plural: "backupbuckets", shortNames: []string{"bbc"}, categories: all, status: true, generation: true,
			columns: printed("Provider", "Seed", "Operation", "Progress"), indexed: []string{"spec.seedName"},
		}, rules[corev1beta1.BackupBucket]{
			validate: core.ValidateBackupBucket, validateUpdate: core.ValidateBackupBucketUpdate,
			fields: map[string]func(*corev1beta1.BackupBucket) string{
				// It has none, but clients may select by it.
				"metadata.namespace":      func(b *corev1beta1.BackupBucket) string { return b.Namespace },
				"spec.seedName":           func(b *corev1beta1.BackupBucket) string { return get(b.Spec.SeedName) },
				"spec.shootRef.name":      func(b *corev1beta1.BackupBucket) string { return get(b.Spec.ShootRef).Name },
				"spec.shootRef.namespace": func(b *corev1beta1.BackupBucket) string { return get(b.Spec.ShootRef).Namespace },
			},
			cells: func(b *corev1beta1.BackupBucket) []any {
				last := get(b.Status.LastOperation)
				return []any{b.Spec.Provider.Type, get(b.Spec.SeedName), or(string(last.State), pending), last.Progress}
			},
		}),
		with[corev1beta1.BackupEntry, corev1beta1.BackupEntryList](kind{
			gvk: inCore("BackupEntry"), plural: "backupentries", shortNames: []string{"bec"}, categories: all, namespaced: true, status: true,
			generation: true, columns: printed("Bucket", "Seed", "Operation", "Progress"), indexed: []string{"spec.seedName", "spec.bucketName"},
		}, rules[corev1beta1.BackupEntry]{
			canonicalize: func(e *corev1beta1.BackupEntry) { labelSeeds(&e.ObjectMeta, e.Spec.SeedName, e.Status.SeedName) },
			validate:     core.ValidateBackupEntry, validateUpdate: core.ValidateBackupEntryUpdate,
			operation: fixed[corev1beta1.BackupEntry](map[string]effect{
				constants.GardenerOperationReconcile: taken,
				constants.GardenerOperationMigrate:   taken,
				constants.GardenerOperationRestore:   counted,
			}),
			fields: map[string]func(*corev1beta1.BackupEntry) string{
				"spec.seedName":           func(b *corev1beta1.BackupEntry) string { return get(b.Spec.SeedName) },
				"spec.bucketName":         func(b *corev1beta1.BackupEntry) string { return b.Spec.BucketName },
				"spec.shootRef.name":      func(b *corev1beta1.BackupEntry) string { return get(b.Spec.ShootRef).Name },
				"spec.shootRef.namespace": func(b *corev1beta1.BackupEntry) string { return get(b.Spec.ShootRef).Namespace },
			},
			cells: func(b *corev1beta1.BackupEntry) []any {
				last := get(b.Status.LastOperation)
				return []any{b.Spec.BucketName, get(b.Spec.SeedName), or(string(last.State), pending), last.Progress}
			},
		}),
	}
}

func operationKinds() []*kind {
	return []*kind{
		with[operationsv1alpha1.Bastion, operationsv1alpha1.BastionList](kind{
			gvk: inOperations("Bastion"), plural: "bastions", categories: all, namespaced: true, status: true, keepStatus: true,
			generation: true, columns: printed("Shoot", "Seed", "IP", "Heartbeat", "Expires"), indexed: []string{"spec.seedName"},
		}, rules[operationsv1alpha1.Bastion]{
			create: func(_ context.Context, b *operationsv1alpha1.Bastion) { heartbeat(b, time.Now()) },
			update: func(_ context.Context, b, _ *operationsv1alpha1.Bastion) {
				if b.Annotations[constants.GardenerOperation] == constants.GardenerOperationKeepalive {
					heartbeat(b, time.Now())
				}
			},
			canonicalize: func(b *operationsv1alpha1.Bastion) {
				if last := b.Status.LastHeartbeatTimestamp; last != nil {
					b.Status.ExpirationTimestamp = &metav1.Time{Time: last.Add(bastionLifetime)}
				}
			},
			validate: operations.ValidateBastion, validateUpdate: operations.ValidateBastionUpdate,
			fields: map[string]func(*operationsv1alpha1.Bastion) string{
				"spec.seedName":      func(b *operationsv1alpha1.Bastion) string { return get(b.Spec.SeedName) },
				"spec.shootRef.name": func(b *operationsv1alpha1.Bastion) string { return b.Spec.ShootRef.Name },
			},
			cells: func(b *operationsv1alpha1.Bastion) []any {
				ingress, heartbeat, expires := get(b.Status.Ingress), "<never>", pending
				if at := b.Status.LastHeartbeatTimestamp; at != nil {
					heartbeat = duration.HumanDuration(time.Since(at.Time)) + " ago"
				}
				if at := b.Status.ExpirationTimestamp; at != nil {
					if expires = "<expired>"; time.Until(at.Time) > 0 {
						expires = duration.HumanDuration(time.Until(at.Time))
					}
				}
				return []any{b.Spec.ShootRef.Name, or(get(b.Spec.SeedName), pending), or(or(ingress.Hostname, ingress.IP), pending), heartbeat, expires}
			},
		}),
	}
}

func seedManagementKinds(options core.Options) []*kind {
	return []*kind{
		with[seedmanagementv1alpha1.Gardenlet, seedmanagementv1alpha1.GardenletList](kind{
			gvk: inSeedManagement("Gardenlet"), plural: "gardenlets", shortNames: []string{"gl", "glet"}, namespaced: true, status: true,
			keepStatus: true, generation: true, columns: printed("OCI Repository", "Reconciled"),
		}, rules[seedmanagementv1alpha1.Gardenlet]{
			validate: seedmanagement.ValidateGardenlet, validateUpdate: seedmanagement.ValidateGardenletUpdate,
			onStatus: seedmanagement.ValidateGardenletStatusUpdate,
			operation: fixed[seedmanagementv1alpha1.Gardenlet](map[string]effect{
				constants.GardenerOperationReconcile:       taken,
				constants.GardenerOperationRenewKubeconfig: counted,
				constants.OperationForceRedeploy:           counted,
			}),
			cells: func(g *seedmanagementv1alpha1.Gardenlet) []any {
				repository := g.Spec.Deployment.Helm.OCIRepository
				return []any{or(get(repository.Ref), get(repository.Repository)), condition(g.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled)}
			},
		}),
		with[seedmanagementv1alpha1.ManagedSeed, seedmanagementv1alpha1.ManagedSeedList](kind{
			gvk: inSeedManagement("ManagedSeed"), plural: "managedseeds", shortNames: []string{"ms"}, namespaced: true, status: true,
			generation: true, columns: printed("Status", "Shoot"),
		}, rules[seedmanagementv1alpha1.ManagedSeed]{
			validate: seedmanagement.ValidateManagedSeed, validateUpdate: seedmanagement.ValidateManagedSeedUpdate,
			onStatus: seedmanagement.ValidateManagedSeedStatusUpdate,
			operation: fixed[seedmanagementv1alpha1.ManagedSeed](map[string]effect{
				constants.GardenerOperationReconcile:       taken,
				constants.GardenerOperationRenewKubeconfig: counted,
			}),
			fields: map[string]func(*seedmanagementv1alpha1.ManagedSeed) string{
				"spec.shoot.name": func(m *seedmanagementv1alpha1.ManagedSeed) string { return get(m.Spec.Shoot).Name },
			},
			cells: func(m *seedmanagementv1alpha1.ManagedSeed) []any {
				status := map[string]string{"True": "Registered", "False": "NotRegistered"}[condition(m.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered)]
				return []any{or(status, "Unknown"), get(m.Spec.Shoot).Name}
			},
		}),
		with[seedmanagementv1alpha1.ManagedSeedSet, seedmanagementv1alpha1.ManagedSeedSetList](kind{
			gvk: inSeedManagement("ManagedSeedSet"), plural: "managedseedsets", shortNames: []string{"mss"}, namespaced: true, status: true,
			generation: true, subresources: managedSeedSetSubresources, columns: printed("Ready", "Pending"),
		}, rules[seedmanagementv1alpha1.ManagedSeedSet]{
			validate: func(s *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
				return seedmanagement.ValidateManagedSeedSet(s, options)
			},
			validateUpdate: func(s, old *seedmanagementv1alpha1.ManagedSeedSet) field.ErrorList {
				return seedmanagement.ValidateManagedSeedSetUpdate(s, old, options)
			},
			onStatus: seedmanagement.ValidateManagedSeedSetStatusUpdate,
			cells: func(s *seedmanagementv1alpha1.ManagedSeedSet) []any {
				replica := ""
				if p := s.Status.PendingReplica; p != nil {
					replica = p.Name + ":" + string(p.Reason)
				}
				return []any{fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, get(s.Spec.Replicas)), replica}
			},
		}),
	}
}

// fixed are operations that have the same effect on every object of a kind.
func fixed[T any](effects map[string]effect) func(*T, string) effect {
	return func(_ *T, operation string) effect { return effects[operation] }
}

// shootRolledOut tells whether a changed spec is rolled out at once. Changes that wait for the
// maintenance time window are no new generation, but for hibernation.
func shootRolledOut(shoot, old *corev1beta1.Shoot) bool {
	if m := shoot.Spec.Maintenance; m != nil && get(m.ConfineSpecUpdateRollout) {
		return hibernationWanted(shoot) != hibernationWanted(old)
	}
	return true
}

func hibernationWanted(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && get(shoot.Spec.Hibernation.Enabled)
}

// shootOperation tells what an operation does to the generation of a shoot. Before the first operation ended there is nothing to
// reconcile again, and one that failed is only retried.
func shootOperation(shoot *corev1beta1.Shoot, operation string) effect {
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return uncounted
	case last.State == corev1beta1.LastOperationStateFailed:
		if operation == constants.ShootOperationRetry {
			return taken
		}
		return uncounted
	case operation == constants.GardenerOperationReconcile:
		return taken
	case operation == constants.ShootOperationForceInPlaceUpdate, strings.HasPrefix(operation, "rotate-"),
		strings.HasPrefix(operation, constants.OperationRolloutWorkers):
		return counted // the gardenlet reads which
	}
	return uncounted
}

// versionColumns are the columns behind the age of seeds.
var versionColumns = []metav1.TableColumnDefinition{
	{Name: "Version", Type: "string", Format: "name", Description: descriptions["Version"]},
	{Name: "K8S Version", Type: "string", Format: "name", Description: descriptions["K8S Version"]},
}

// internalSecretColumns are those of Secrets, so all are plain text.
func internalSecretColumns() []metav1.TableColumnDefinition {
	columns := printed("Type~", "Data~")
	columns[len(columns)-1].Type = "string"
	return columns
}

// get returns what a pointer points to, or nothing.
func get[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func condition(conditions []corev1beta1.Condition, wanted corev1beta1.ConditionType) string {
	for _, c := range conditions {
		if c.Type == wanted {
			return string(c.Status)
		}
	}
	return unknown
}

func operationText(last *corev1beta1.LastOperation) string {
	if last == nil {
		return pending
	}
	return fmt.Sprintf("%s %s (%d%%)", last.Type, last.State, last.Progress)
}

func seedStatus(seed *corev1beta1.Seed) string {
	status := "Ready"
	for _, wanted := range []corev1beta1.ConditionType{
		corev1beta1.SeedGardenletReady, corev1beta1.SeedBackupBucketsReady, corev1beta1.SeedExtensionsReady, corev1beta1.SeedSystemComponentsHealthy,
	} {
		if wanted == corev1beta1.SeedBackupBucketsReady && seed.Spec.Backup == nil {
			continue
		}
		switch condition(seed.Status.Conditions, wanted) {
		case string(corev1beta1.ConditionFalse):
			return "NotReady"
		case unknown, string(corev1beta1.ConditionUnknown):
			status = "Unknown"
		}
	}
	return status
}

func shootCells(s *corev1beta1.Shoot) []any {
	profile := or(get(s.Spec.CloudProfile).Name, get(s.Spec.CloudProfileName))
	if get(s.Spec.CloudProfile).Kind == "NamespacedCloudProfile" {
		profile = s.Namespace + "/" + profile
	}
	hibernation := "Awake"
	switch wanted := hibernationWanted(s); {
	case wanted && s.Status.Hibernated:
		hibernation = "Hibernated"
	case wanted:
		hibernation = "Hibernating"
	case s.Status.Hibernated:
		hibernation = "Waking Up"
	}
	c := s.Status.Conditions
	return []any{
		profile, s.Spec.Provider.Type, s.Spec.Region, or(get(s.Spec.SeedName), "<none>"), s.Spec.Kubernetes.Version, hibernation,
		operationText(s.Status.LastOperation), or(s.Labels[constants.ShootStatus], pending), or(string(get(s.Spec.Purpose)), "<none>"),
		or(s.Status.Gardener.Version, unknown), condition(c, "APIServerAvailable"), condition(c, "ControlPlaneHealthy"),
		condition(c, "ObservabilityComponentsHealthy"), condition(c, "EveryNodeReady"), condition(c, "SystemComponentsHealthy"),
	}
}

// toV1 returns a ControllerDeployment in the version that is validated.
func toV1(deployment *corev1beta1.ControllerDeployment) (*gardencorev1.ControllerDeployment, field.ErrorList) {
	out := &gardencorev1.ControllerDeployment{}
	if err := deployment.ToV1(out); err != nil {
		return out, field.ErrorList{field.Invalid(field.NewPath("providerConfig"), deployment.Type, err.Error())}
	}
	return out, nil
}

// dropUnusable takes versions that cannot be used out of a new profile.
func dropUnusable(spec *corev1beta1.CloudProfileSpec, now time.Time) {
	unusable := func(v corev1beta1.ExpirableVersion) bool {
		c := v.ClassificationAt(now)
		return c == corev1beta1.ClassificationExpired || c == corev1beta1.ClassificationUnavailable
	}
	spec.Kubernetes.Versions = slices.DeleteFunc(spec.Kubernetes.Versions, unusable)
	for i := range spec.MachineImages {
		image := &spec.MachineImages[i]
		image.Versions = slices.DeleteFunc(image.Versions, func(v corev1beta1.MachineImageVersion) bool { return unusable(v.ExpirableVersion) })
	}
}

// labelSeeds labels what is on a seed, or moves between two, with their names.
func labelSeeds(meta *metav1.ObjectMeta, names ...*string) {
	for key := range meta.Labels {
		if strings.HasPrefix(key, constants.PrefixSeedName) {
			delete(meta.Labels, key)
		}
	}
	for _, name := range names {
		if get(name) != "" {
			metav1.SetMetaDataLabel(meta, constants.PrefixSeedName+*name, "true")
		}
	}
}

// bastionLifetime is how long a Bastion lives after its last heartbeat.
const bastionLifetime = time.Hour

// heartbeat prolongs the life of a Bastion. Its users ask for that with an annotation, which is taken off.
func heartbeat(bastion *operationsv1alpha1.Bastion, now time.Time) {
	if bastion.Annotations[constants.GardenerOperation] == constants.GardenerOperationKeepalive {
		delete(bastion.Annotations, constants.GardenerOperation)
	}
	bastion.Status.LastHeartbeatTimestamp = &metav1.Time{Time: now}
}

// mergeStringData moves the texts of a secret to its data.
func mergeStringData(secret *corev1beta1.InternalSecret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
