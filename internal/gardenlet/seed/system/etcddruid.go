package system

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/etcddruid"
)

func (s *run) deployEtcdDruid(ctx context.Context) error {
	objects, err := s.etcdDruidObjects()
	if err != nil {
		return err
	}
	return s.deploy(ctx, objects...)
}

func (s *run) awaitEtcdDruid(ctx context.Context) error {
	return s.awaitDeployment(ctx, etcddruid.Name)
}

func (s *run) deleteEtcdDruid(ctx context.Context) error {
	objects, err := s.forDeletion().etcdDruidObjects()
	if err != nil {
		return err
	}
	return s.destroy(ctx, objects...)
}

func (s *run) etcdDruidObjects() ([]client.Object, error) {
	config := etcddruidconfigv1alpha1.EtcdDruidConfiguration{
		Images: etcddruidconfigv1alpha1.Images{Etcd: s.Images.Etcd, BackupRestore: s.Images.Gardener},
	}
	if c := s.ETCD; c != nil && c.ETCDController != nil && c.ETCDController.Workers != nil {
		config.Controllers.Etcd.ConcurrentSyncs = int(*c.ETCDController.Workers)
	}
	return etcddruid.Objects(etcddruid.Values{Namespace: constants.GardenNamespace, Image: s.Images.Gardener, Replicas: s.replicas, Config: config})
}
