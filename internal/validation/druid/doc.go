// Package druid validates the objects of druid.gardener.cloud. All functions are pure and return every error at once.
//
// The CustomResourceDefinitions refuse most invalid objects already. Here are the checks that they cannot express, and those that
// are needed before the API server has applied them.
package druid
