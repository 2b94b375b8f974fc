/** Checks Kubernetes manifests against the schemas and the types of `kubernetes-models`. */
import { join } from 'node:path'
import {
  PodMonitor,
  PrometheusRule,
  ServiceMonitor,
} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'
import { Deployment, StatefulSet } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1'
import ts from 'typescript'

/** A manifest as parsed from YAML. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly [field: string]: unknown
}

const OPERATOR = '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'

const MODELS: Readonly<
  Record<string, { readonly from: string; readonly model: new (data: never) => { validate(): void } }>
> = {
  ConfigMap: { from: 'kubernetes-models/v1', model: ConfigMap },
  Service: { from: 'kubernetes-models/v1', model: Service },
  Deployment: { from: 'kubernetes-models/apps/v1', model: Deployment },
  StatefulSet: { from: 'kubernetes-models/apps/v1', model: StatefulSet },
  PodDisruptionBudget: { from: 'kubernetes-models/policy/v1', model: PodDisruptionBudget },
  NetworkPolicy: { from: 'kubernetes-models/networking.k8s.io/v1', model: NetworkPolicy },
  ServiceAccount: { from: 'kubernetes-models/v1', model: ServiceAccount },
  Ingress: { from: 'kubernetes-models/networking.k8s.io/v1', model: Ingress },
  HorizontalPodAutoscaler: {
    from: 'kubernetes-models/autoscaling/v2',
    model: HorizontalPodAutoscaler,
  },
  PodMonitor: { from: OPERATOR, model: PodMonitor },
  ServiceMonitor: { from: OPERATOR, model: ServiceMonitor },
  PrometheusRule: { from: OPERATOR, model: PrometheusRule },
}

/** The violation of the API's schema by the values of a manifest; null if there is none. */
export function schemaProblem(manifest: Manifest): string | null {
  const known = MODELS[manifest.kind]
  if (known === undefined) return `no schema for ${manifest.kind}`
  try {
    new known.model(manifest as never).validate()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * Finds fields that the API does not have, which the schemas accept: compiles the manifests as constants of
 * the models' types, for which TypeScript refuses unknown members. Returns its messages.
 */
export function unknownFields(manifests: readonly Manifest[]): string[] {
  const source = manifests
    .map((manifest, index) => {
      const from = MODELS[manifest.kind]?.from ?? ''
      const type = `import('${from}').I${manifest.kind}`
      return `export const manifest${index}: ${type} = ${JSON.stringify(manifest, null, 1)}`
    })
    .join('\n')
  const name = join(process.cwd(), 'test', 'deploy', 'manifests.virtual.ts')
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const real = ts.createCompilerHost(options)
  host.getSourceFile = (path, ...rest) =>
    path === name
      ? ts.createSourceFile(path, source, ts.ScriptTarget.ES2022)
      : real.getSourceFile(path, ...rest)
  host.fileExists = (path) => path === name || real.fileExists(path)
  host.readFile = (path) => (path === name ? source : real.readFile(path))
  const program = ts.createProgram([name], options, host)
  return ts.getPreEmitDiagnostics(program).map(({ messageText, start }) => {
    const line = source.slice(0, start ?? 0).split('\n').length
    return `${source.split('\n')[line - 1] ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}
