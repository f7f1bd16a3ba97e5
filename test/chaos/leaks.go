package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/snapshot"
)

// surroundings are the objects of garden and seed, which are one cluster here, before any shoot was created.
type surroundings struct {
	config  *rest.Config
	objects []string
	// without are the namespaces of the control planes of other shoots.
	without []string
}

// observe lists the objects of the cluster. Shoots whose names start with prefix must not exist.
func observe(ctx context.Context, l *landscape.Landscape, c client.Client, prefix string) (*surroundings, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigFile(landscape.RuntimeCluster))
	if err != nil {
		return nil, err
	}
	shoots := &corev1beta1.ShootList{}
	if err := c.List(ctx, shoots); err != nil {
		return nil, err
	}
	s := &surroundings{config: config}
	for _, shoot := range shoots.Items {
		if strings.HasPrefix(shoot.Name, prefix) {
			return nil, fmt.Errorf("shoot %q of an earlier run still exists: delete it, and run this again when it is gone", client.ObjectKeyFromObject(&shoot))
		}
		s.without = append(s.without, shoot.Status.TechnicalID)
	}
	s.objects, err = snapshot.Take(ctx, config, s.without...)
	return s, err
}

// leaks returns an error if there are more or fewer objects than before. It waits for objects whose deletion takes a moment longer.
func (s *surroundings) leaks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	return snapshot.Await(ctx, s.config, s.objects, s.without...)
}
