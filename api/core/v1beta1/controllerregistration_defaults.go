package v1beta1

import "time"

// The kinds of extension resources that have defaults of their own.
const (
	kindExtension               = "Extension"
	kindSelfHostedShootExposure = "SelfHostedShootExposure"
)

// DefaultControllerRegistration fills in the defaults of a ControllerRegistration.
func DefaultControllerRegistration(registration *ControllerRegistration) {
	for i := range registration.Spec.Resources {
		resource := &registration.Spec.Resources[i]
		setDefault(&resource.Primary, true)
		switch resource.Kind {
		case kindExtension:
			if len(resource.ClusterCompatibility) == 0 {
				resource.ClusterCompatibility = []ClusterType{ClusterTypeShoot}
			}
			setDuration(&resource.ReconcileTimeout, 3*time.Minute)
			lifecycle := ensure(&resource.Lifecycle)
			setDefault(&lifecycle.Reconcile, AfterKubeAPIServer)
			setDefault(&lifecycle.Delete, BeforeKubeAPIServer)
			setDefault(&lifecycle.Migrate, BeforeKubeAPIServer)
		case kindSelfHostedShootExposure:
			setDefault(&resource.ContinuousEndpointUpdate, true)
		}
	}
	if registration.Spec.Deployment != nil {
		setDefault(&registration.Spec.Deployment.Policy, ControllerDeploymentPolicyOnDemand)
	}
}
