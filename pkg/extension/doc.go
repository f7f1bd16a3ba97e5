// Package extension is the library for authors of extensions: controllers for the resources of extensions.gardener.cloud.
//
// An author writes an Actuator for a kind, and Add makes a controller of it:
//
//	extension.Add(mgr, extension.Options[*extensionsv1alpha1.DNSRecord]{
//		Types: []string{"local"}, Actuator: &dnsRecords{},
//	})
//
// The library does what is the same for all of them: it selects the objects of the types and classes that the extension is responsible
// for, decides which operation is requested (operation.go has the order), adds the finalizer before the actuator is called and removes it
// after deletion, reads the Cluster, removes the annotation of the operation, and writes the status. It reads extension resources and
// Clusters, and writes metadata and status of extension resources, and events, all in the seed.
package extension
