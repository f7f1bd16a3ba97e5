package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gardener.cloud/gardener/api/config/internal/defaulting"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&AdmissionControllerConfiguration{}, func(obj any) {
		SetDefaults(obj.(*AdmissionControllerConfiguration))
	})
	return nil
}

// SetDefaults sets what the configuration leaves open.
func SetDefaults(config *AdmissionControllerConfiguration) {
	defaulting.ClientConnection(&config.GardenClientConnection, 50, 100)
	defaulting.Zero(&config.LogLevel, defaulting.LogLevel)
	defaulting.Zero(&config.LogFormat, defaulting.LogFormat)

	server := &config.Server
	defaulting.Zero(&server.Webhooks.Port, 2721)
	defaulting.Zero(&defaulting.Section(&server.HealthProbes).Port, 2722)
	defaulting.Zero(&defaulting.Section(&server.Metrics).Port, 2723)

	if limits := server.ResourceAdmissionConfiguration; limits != nil {
		for i := range limits.UnrestrictedSubjects {
			subject := &limits.UnrestrictedSubjects[i]
			if subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind {
				defaulting.Zero(&subject.APIGroup, rbacv1.GroupName)
			}
		}
	}
}
