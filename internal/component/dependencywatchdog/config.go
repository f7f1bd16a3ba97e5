package dependencywatchdog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigFile is the name of the configuration file, and the key in its ConfigMap.
const ConfigFile = "dep-config.yaml"

// ProberConfig is the configuration file of the prober. It has the keys of the original, which has no apiVersion.
type ProberConfig struct {
	// KubeConfigSecretName is the Secret with the kubeconfig of a shoot, in the namespace of its control plane.
	KubeConfigSecretName string `json:"kubeConfigSecretName"`
	// ProbeInterval is how often a shoot is probed, BackoffJitterFactor by what part of it this varies, and InitialDelay when it is probed first.
	ProbeInterval       metav1.Duration `json:"probeInterval,omitzero"`
	InitialDelay        metav1.Duration `json:"initialDelay,omitzero"`
	BackoffJitterFactor *float64        `json:"backoffJitterFactor,omitempty"`
	// ProbeTimeout is the end of each request to a shoot.
	ProbeTimeout metav1.Duration `json:"probeTimeout,omitzero"`
	// KCMNodeMonitorGraceDuration is nodeMonitorGracePeriod of shoots that have none in their spec.
	KCMNodeMonitorGraceDuration metav1.Duration `json:"kcmNodeMonitorGraceDuration"`
	// NodeLeaseFailureFraction is the part of Leases of nodes from which on too many have expired.
	NodeLeaseFailureFraction *float64 `json:"nodeLeaseFailureFraction,omitempty"`
	// DependentResourceInfos are the Deployments that are scaled.
	DependentResourceInfos []DependentResource `json:"dependentResourceInfos"`
}

// DependentResource is a Deployment that is scaled.
type DependentResource struct {
	Ref *autoscalingv1.CrossVersionObjectReference `json:"ref"`
	// Optional says that it need not exist.
	Optional bool `json:"optional"`
	// ScaleUp and ScaleDown say in which order.
	ScaleUp   *Scaling `json:"scaleUp,omitempty"`
	ScaleDown *Scaling `json:"scaleDown,omitempty"`
}

// Scaling is the place of a Deployment in an order.
type Scaling struct {
	// Level is the number of its group. Those with lower numbers come first.
	Level int `json:"level"`
	// InitialDelay is how long the groups before it have to be available.
	InitialDelay metav1.Duration `json:"initialDelay,omitzero"`
	// Timeout is accepted as in the original. All writes of a pass end with it.
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// WeederConfig is the configuration file of the weeder. It has the keys of the original, which has no apiVersion.
type WeederConfig struct {
	// WatchDuration is how long pods are restarted after their Service has become ready.
	WatchDuration metav1.Duration `json:"watchDuration,omitzero"`
	// ServicesAndDependantSelectors select the pods that depend on a Service, by its name.
	ServicesAndDependantSelectors map[string]DependantSelectors `json:"servicesAndDependantSelectors"`
}

// DependantSelectors select pods that depend on a Service. One of them has to match.
type DependantSelectors struct {
	PodSelectors []*metav1.LabelSelector `json:"podSelectors"`
}

// SetDefaults fills in what a file leaves out.
func (c *ProberConfig) SetDefaults() {
	seconds := func(d *metav1.Duration, n time.Duration) {
		if d.Duration == 0 {
			d.Duration = n * time.Second
		}
	}
	seconds(&c.ProbeInterval, 10)
	seconds(&c.InitialDelay, 30)
	seconds(&c.ProbeTimeout, 30)
	if c.BackoffJitterFactor == nil {
		c.BackoffJitterFactor = new(0.2)
	}
	if c.NodeLeaseFailureFraction == nil {
		c.NodeLeaseFailureFraction = new(0.6)
	}
	for i := range c.DependentResourceInfos {
		for _, s := range []**Scaling{&c.DependentResourceInfos[i].ScaleUp, &c.DependentResourceInfos[i].ScaleDown} {
			if *s == nil {
				*s = &Scaling{}
			}
		}
	}
}

// Validate returns all errors of a configuration with defaults.
func (c *ProberConfig) Validate() error {
	var errs []error
	if c.KubeConfigSecretName == "" {
		errs = append(errs, errors.New("kubeConfigSecretName: required"))
	}
	if c.KCMNodeMonitorGraceDuration.Duration <= 0 {
		errs = append(errs, errors.New("kcmNodeMonitorGraceDuration: must be above zero"))
	}
	if f := *c.NodeLeaseFailureFraction; f <= 0 || f > 1 {
		errs = append(errs, fmt.Errorf("nodeLeaseFailureFraction: %v must be above 0 and at most 1", f))
	}
	if len(c.DependentResourceInfos) == 0 {
		errs = append(errs, errors.New("dependentResourceInfos: required"))
	}
	for i, d := range c.DependentResourceInfos {
		if d.Ref == nil || d.Ref.Kind != "Deployment" || d.Ref.Name == "" {
			errs = append(errs, fmt.Errorf("dependentResourceInfos[%d].ref: must be a Deployment with a name", i))
		}
	}
	return errors.Join(errs...)
}

// SetDefaults fills in what a file leaves out.
func (c *WeederConfig) SetDefaults() {
	if c.WatchDuration.Duration == 0 {
		c.WatchDuration.Duration = 5 * time.Minute
	}
}

// Validate returns all errors of a configuration with defaults.
func (c *WeederConfig) Validate() error {
	var errs []error
	if len(c.ServicesAndDependantSelectors) == 0 {
		errs = append(errs, errors.New("servicesAndDependantSelectors: required"))
	}
	for service, d := range c.ServicesAndDependantSelectors {
		if len(d.PodSelectors) == 0 || slices.Contains(d.PodSelectors, nil) {
			errs = append(errs, fmt.Errorf("servicesAndDependantSelectors[%s].podSelectors: required", service))
		}
		for _, selector := range d.PodSelectors {
			if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
				errs = append(errs, fmt.Errorf("servicesAndDependantSelectors[%s].podSelectors: %w", service, err))
			}
		}
	}
	return errors.Join(errs...)
}
