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

// surroundings are garden and seed, which are one cluster here, as they were before any shoot was ordered.
type surroundings struct {
	config  *rest.Config
	objects []string
	// without are the control planes of others.
	without []string
}

// look takes note of what there is. Shoots whose names start with prefix must not be there.
func look(ctx context.Context, l *landscape.Landscape, c client.Client, prefix string) (*surroundings, error) {
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
			return nil, fmt.Errorf("shoot %q of an earlier run is still there: delete it, and begin again when it is gone", client.ObjectKeyFromObject(&shoot))
		}
		s.without = append(s.without, shoot.Status.TechnicalID)
	}
	s.objects, err = snapshot.Take(ctx, config, s.without...)
	return s, err
}

// leaks returns what is there more, or less, than before. It waits for what goes a moment later.
func (s *surroundings) leaks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	return snapshot.Await(ctx, s.config, s.objects, s.without...)
}
