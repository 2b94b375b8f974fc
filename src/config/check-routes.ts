/** Checks the rules of routes that span several keys. The schema is in `route-schema.ts`. */
import type { RouteConfig, Catalogue, Config, DialectChoice, TargetName } from './config.js'
import { nearest, type Path, type ReportFinding, type Finding } from './config-problem.js'
import { whenOf, type RouteValues } from './schema/route-schema.js'

/** Reports problems of the routes; `upstreams` are the names in the file. */
export function checkRoutes(
  routes: readonly RouteValues[],
  upstreams: readonly string[],
  report: ReportFinding,
): void {
  const known = new Set(upstreams)
  const firsts = new Map<string, number>()
  const checkName = (upstream: string, path: Path): void => {
    if (known.has(upstream)) return
    reportUnknown({ what: 'an upstream', name: upstream, path }, upstreams, report)
  }
  routes.forEach((route, index) => {
    const path = ['routes', index]
    checkMatch(route, path, report)
    const first = earlierDuplicate(route, index, firsts)
    if (first !== null) report(path, duplicateMessage(route, first))
    if (route.upstream === undefined && route.targets === undefined) {
      report(path, 'must have upstream or targets')
    } else if (route.upstream !== undefined && route.targets !== undefined) {
      report(path, 'must have upstream or targets, not both')
    }
    if (route.shadow !== undefined) {
      checkName(route.shadow.upstream, [...path, 'shadow', 'upstream'])
    }
    if (route.upstream !== undefined) checkName(route.upstream, [...path, 'upstream'])
    for (const key of ['targets', 'fallback'] as const) {
      route[key]?.forEach((target, at) => checkName(target.upstream, [...path, key, at, 'upstream']))
    }
    checkTargets(route, path, report)
  })
}

function checkMatch(route: RouteValues, path: Path, report: ReportFinding): void {
  if (route.model !== undefined && route.prefix !== undefined) {
    report(
      path,
      'must have model or prefix, not both: the model to request from an upstream belongs in targets',
    )
  }
  if (route.model === undefined && route.prefix === undefined) {
    report(path, 'must have model or prefix')
  }
  if (route.prefix === '') {
    report([...path, 'prefix'], 'must not be empty: an empty prefix would match every model')
  }
  if (route.strip !== undefined && route.prefix?.startsWith(route.strip) !== true) {
    report([...path, 'strip'], 'needs a prefix that starts with it')
  }
  if (route.when !== undefined && whenOf(route.when) === null) {
    report([...path, 'when'], 'has no condition: add labels, images, tools, min_prompt_tokens or plugin')
  }
}

/**
 * The index of an earlier route with the same matcher and conditions, or null: the later one is never used.
 * `firsts` has the first index of each matcher, and gets that of this route.
 */
function earlierDuplicate(route: RouteValues, index: number, firsts: Map<string, number>): number | null {
  const models = route.model === undefined ? `prefix ${route.prefix ?? ''}` : `model ${route.model}`
  const matcher = `${models} ${JSON.stringify(whenOf(route.when))}`
  const first = firsts.get(matcher)
  if (first === undefined) firsts.set(matcher, index)
  return first ?? null
}

function duplicateMessage({ when }: RouteValues, first: number): string {
  return when === undefined
    ? `matches the same models as routes[${first}]: add a when, or merge them into one route with targets`
    : `has the same models and conditions as routes[${first}]: remove one of them`
}

function checkTargets(route: RouteValues, path: Path, report: ReportFinding): void {
  const { targets = [], upstream } = route
  if (targets.length > 0 && targets.every(({ weight }) => weight === 0)) {
    report([...path, 'targets'], 'must have at least one weight above 0')
  } else if (targets.length > 0 && !targets.some(staysInUse)) {
    report(
      [...path, 'targets'],
      'must have a target without abort and with a weight above 0, in case the others are aborted',
    )
  }
  const own = upstream === undefined ? [] : [{ upstream, model: undefined }]
  const seen = new Set(own.map(identityOf))
  for (const key of ['targets', 'fallback'] as const) {
    route[key]?.forEach((target, at) => {
      const identity = identityOf(target)
      if (seen.has(identity)) {
        report(
          [...path, key, at],
          'repeats an earlier target: remove it, or set retry.attempts to retry one target',
        )
      }
      seen.add(identity)
    })
  }
}

function staysInUse({ weight, abort }: NonNullable<RouteValues['targets']>[number]): boolean {
  return weight > 0 && abort === undefined
}

function identityOf(target: { upstream: string; model?: string | undefined }): string {
  return `${target.upstream} ${target.model ?? ''}`
}

/** Dialects without embeddings, as in `wireFor` of formats/index.ts. */
const WITHOUT_EMBEDDINGS: ReadonlySet<DialectChoice> = new Set(['anthropic'])

/**
 * Reports each target that does not support the requests of its route: every dialect supports every chat
 * format, but only some support embeddings. Runs after the catalogue is loaded.
 */
export function checkTranslatable(config: Config, catalogue: Catalogue): Finding[] {
  return config.routes.flatMap((route, index) => {
    if (!isForEmbeddings(route, catalogue)) return []
    return (['targets', 'fallback'] as const).flatMap((key) =>
      route[key].flatMap((target, at) => {
        const message = problemOf(target, config, catalogue)
        return message === null ? [] : [{ path: ['routes', index, key, at], message }]
      }),
    )
  })
}

function problemOf(
  { upstream, model }: TargetName,
  { upstreams }: Config,
  catalogue: Catalogue,
): string | null {
  const dialect = upstreams[upstream]?.dialect
  if (dialect !== undefined && WITHOUT_EMBEDDINGS.has(dialect)) {
    return `uses the dialect ${dialect}, which has no embeddings, but the route is for embedding models: choose another upstream`
  }
  const facts = model === null ? null : catalogue.find(model)
  if (facts === null || facts.embedding === true) return null
  return 'names a model without embeddings, but the route is for embedding models: choose an embedding model'
}

/**
 * Whether the catalogue has models of the route and all of them are embedding models. An alias counts as its
 * first target.
 */
function isForEmbeddings({ match, targets }: RouteConfig, catalogue: Catalogue): boolean {
  const first = targets[0]?.model ?? null
  if (first !== null) return catalogue.find(first)?.embedding === true
  if ('model' in match) return catalogue.find(match.model)?.embedding === true
  const { prefix } = match
  const own = catalogue.models.filter(({ id }) => id.startsWith(prefix))
  return own.length > 0 && own.every(({ embedding }) => embedding === true)
}

/** More names are not listed in a message. */
const MAX_LISTED = 10

/** A name in a setting, what it should be a name of, and the path of the setting. */
interface UnknownName {
  readonly what: 'an upstream' | 'a plan' | 'a guardrail' | 'a dimension'
  readonly name: string
  readonly path: Path
}

/** Reports that `name` is not one of `known`, with a suggestion or the list of names. */
export function reportUnknown(
  { what, name, path }: UnknownName,
  known: readonly string[],
  report: ReportFinding,
): void {
  const suggestion = nearest(name, known)
  const isListed = suggestion === null && known.length > 0 && known.length <= MAX_LISTED
  const list = isListed ? `: use one of ${known.join(', ')}` : ''
  report(path, `is not ${what} of this file${list}`, suggestion)
}
