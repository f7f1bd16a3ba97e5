package compat

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	autoscalingv1alpha1 "gardener.cloud/gardener/api/autoscaling/v1alpha1"
	shootdnsrewritingv1alpha1 "gardener.cloud/gardener/api/config/admission/shootdnsrewriting/v1alpha1"
	shootresourcereservationv1alpha1 "gardener.cloud/gardener/api/config/admission/shootresourcereservation/v1alpha1"
	shoottolerationrestrictionv1alpha1 "gardener.cloud/gardener/api/config/admission/shoottolerationrestriction/v1alpha1"
	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	healthcheckv1alpha1 "gardener.cloud/gardener/api/config/healthcheck/v1alpha1"
	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	dashboardv1alpha1 "gardener.cloud/gardener/api/dashboard/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
)

// group is an API group version whose Go types are compared with the facts.
type group struct {
	// schema is the name of the schema file. Without it, everything in the group is extra.
	schema string
	// addToScheme registers the types.
	addToScheme func(*runtime.Scheme) error
	// pkg is the directory of the types below the repository's root, and what schemas call it in other groups.
	pkg string
	// more are kinds of the schema that are not registered, because they only appear inside of others.
	more []any
	// protobuf is the key of the group in protobuf.yaml.
	protobuf string
	// crd says that the schema was read from a CustomResourceDefinition, not from Go types: it names no Go types. The fields of such
	// a group are compared by TestCRDSchemas.
	crd bool
}

var groups = []group{
	{
		schema: "core.gardener.cloud_v1beta1", addToScheme: corev1beta1.AddToScheme, pkg: "core/v1beta1",
		more: []any{corev1beta1.HelmControllerDeployment{}}, protobuf: "github.com.gardener.gardener.pkg.apis.core.v1beta1",
	},
	{
		schema: "core.gardener.cloud_v1", addToScheme: gardencorev1.AddToScheme, pkg: "core/v1",
		protobuf: "github.com.gardener.gardener.pkg.apis.core.v1",
	},
	{
		schema: "security.gardener.cloud_v1alpha1", addToScheme: securityv1alpha1.AddToScheme, pkg: "security/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.security.v1alpha1",
	},
	{
		schema: "seedmanagement.gardener.cloud_v1alpha1", addToScheme: seedmanagementv1alpha1.AddToScheme, pkg: "seedmanagement/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.seedmanagement.v1alpha1",
	},
	{
		schema: "operations.gardener.cloud_v1alpha1", addToScheme: operationsv1alpha1.AddToScheme, pkg: "operations/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.operations.v1alpha1",
	},
	{
		schema: "authentication.gardener.cloud_v1alpha1", addToScheme: authenticationv1alpha1.AddToScheme, pkg: "authentication/v1alpha1",
		protobuf: "github.com.gardener.gardener.pkg.apis.authentication.v1alpha1",
	},
	{addToScheme: settingsv1alpha1.AddToScheme, pkg: "settings/v1alpha1"},
	{schema: "gardenlet.config.gardener.cloud_v1alpha1", addToScheme: gardenletconfigv1alpha1.AddToScheme, pkg: "config/gardenlet/v1alpha1"},

	{schema: "extensions.gardener.cloud_v1alpha1", addToScheme: extensionsv1alpha1.AddToScheme, pkg: "extensions/v1alpha1"},
	{schema: "resources.gardener.cloud_v1alpha1", addToScheme: resourcesv1alpha1.AddToScheme, pkg: "resources/v1alpha1"},
	{schema: "operator.gardener.cloud_v1alpha1", addToScheme: operatorv1alpha1.AddToScheme, pkg: "operator/v1alpha1"},
	{schema: "druid.gardener.cloud_v1alpha1", addToScheme: druidv1alpha1.AddToScheme, pkg: "druid/v1alpha1", crd: true},
	{schema: "machine.sapcloud.io_v1alpha1", addToScheme: machinev1alpha1.AddToScheme, pkg: "machine/v1alpha1", crd: true},
	{schema: "dashboard.gardener.cloud_v1alpha1", addToScheme: dashboardv1alpha1.AddToScheme, pkg: "dashboard/v1alpha1", crd: true},
	{schema: "autoscaling.gardener.cloud_v1alpha1", addToScheme: autoscalingv1alpha1.AddToScheme, pkg: "autoscaling/v1alpha1", crd: true},
	{schema: "local.provider.extensions.gardener.cloud_v1alpha1", addToScheme: localv1alpha1.AddToScheme, pkg: "provider/local/v1alpha1"},
	{schema: "admissioncontroller.config.gardener.cloud_v1alpha1", addToScheme: admissioncontrollerconfigv1alpha1.AddToScheme, pkg: "config/admissioncontroller/v1alpha1"},
	{schema: "controllermanager.config.gardener.cloud_v1alpha1", addToScheme: controllermanagerconfigv1alpha1.AddToScheme, pkg: "config/controllermanager/v1alpha1"},
	{schema: "scheduler.config.gardener.cloud_v1alpha1", addToScheme: schedulerconfigv1alpha1.AddToScheme, pkg: "config/scheduler/v1alpha1"},
	{schema: "nodeagent.config.gardener.cloud_v1alpha1", addToScheme: nodeagentconfigv1alpha1.AddToScheme, pkg: "config/nodeagent/v1alpha1"},
	{schema: "operator.config.gardener.cloud_v1alpha1", addToScheme: operatorconfigv1alpha1.AddToScheme, pkg: "config/operator/v1alpha1"},
	{schema: "resourcemanager.config.gardener.cloud_v1alpha1", addToScheme: resourcemanagerconfigv1alpha1.AddToScheme, pkg: "config/resourcemanager/v1alpha1"},
	{
		schema: "extensions-library-config_v1alpha1", addToScheme: func(*runtime.Scheme) error { return nil }, pkg: "config/healthcheck/v1alpha1",
		more: []any{healthcheckv1alpha1.HealthCheckConfig{}, healthcheckv1alpha1.RESTOptions{}},
	},
	{schema: "shootdnsrewriting.admission.gardener.cloud_v1alpha1", addToScheme: shootdnsrewritingv1alpha1.AddToScheme, pkg: "config/admission/shootdnsrewriting/v1alpha1"},
	{schema: "shootresourcereservation.admission.gardener.cloud_v1alpha1", addToScheme: shootresourcereservationv1alpha1.AddToScheme, pkg: "config/admission/shootresourcereservation/v1alpha1"},
	{schema: "shoottolerationrestriction.admission.gardener.cloud_v1alpha1", addToScheme: shoottolerationrestrictionv1alpha1.AddToScheme, pkg: "config/admission/shoottolerationrestriction/v1alpha1"},
}

const apiPath = "gardener.cloud/gardener/api/"

// hasProtobuf says whether the types are served by the gardener-apiserver, which does so in protobuf too.
func (g group) hasProtobuf() bool { return g.protobuf != "" || g.schema == "" }

// kinds returns the kinds of the group: registered ones without lists, and those that the group names.
func (g group) kinds() map[string]reflect.Type {
	scheme := runtime.NewScheme()
	if err := g.addToScheme(scheme); err != nil {
		panic(err)
	}
	out := map[string]reflect.Type{}
	for gvk, typ := range scheme.AllKnownTypes() {
		if typ.PkgPath() != apiPath+g.pkg {
			continue // added by metav1.AddToGroupVersion
		}
		if items, ok := typ.FieldByName("Items"); ok && items.Type.Kind() == reflect.Slice && typ.Name() == items.Type.Elem().Name()+"List" {
			continue
		}
		out[gvk.Kind] = typ
	}
	for _, obj := range g.more {
		out[reflect.TypeOf(obj).Name()] = reflect.TypeOf(obj)
	}
	return out
}
