// Package extension is the library for authors of extensions: controllers that fulfil the resources of extensions.gardener.cloud.
//
// An author writes an Actuator for a kind, and Add makes a controller of it:
//
//	extension.Add(mgr, extension.Options[*extensionsv1alpha1.DNSRecord]{
//		Types: []string{"local"}, Actuator: &dnsRecords{},
//	})
//
// The library does what is the same for all of them: it picks the objects of the types and classes that the extension is responsible
// for, decides which operation is asked for (operation.go has the order), puts the finalizer on before the actuator is
// called and takes it off afterwards, reads the Cluster, removes the annotation of the operation, and reports in the status. It reads
// extension resources and Clusters, and writes metadata and status of extension resources, and events. It works in the seed.
package extension
