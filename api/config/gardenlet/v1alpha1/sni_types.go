package v1alpha1

// SNI configures how API servers of shoots are exposed.
type SNI struct {
	// Ingress is the ingress gateway.
	// +optional
	Ingress *SNIIngress `json:"ingress,omitempty"`
}

// SNIIngress is an ingress gateway.
type SNIIngress struct {
	// ServiceName is the service of the gateway. "istio-ingressgateway" is the default.
	// +optional
	ServiceName *string `json:"serviceName,omitempty"`
	// ServiceExternalIP is an address for the service, where no load balancer gives it one.
	// +optional
	ServiceExternalIP *string `json:"serviceExternalIP,omitempty"`
	// Namespace is the namespace of the gateway. "istio-ingress" is the default, and "istio-ingress-handler-" with
	// the name for an exposure class handler.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Labels are the labels of the gateway's pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}
