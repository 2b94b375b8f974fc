/**
 * Sample requests for comparing two files without a running gateway: one for each routed model, and for each
 * condition of its routes.
 */
import type { ModelFacts } from '../../chat/model.js'
import type { WhenConfig } from '../../config/routes/route.js'
import type { RequestHead } from '../../gateway/observe/recent-requests.js'
import type { RequestShape } from '../../gateway/observe/request-shape.js'
import type { ComparedConfig } from './compared-config.js'

/** Prompt and reply tokens of each sample, for the comparison of costs. */
export const SAMPLE_TOKENS = 1_000

const PLAIN: WhenConfig = { labels: {}, images: null, tools: null, minPromptTokens: null }

/** One request for each model and condition of the two files. */
export function sampleHeads(before: ComparedConfig, after: ComparedConfig): RequestHead[] {
  return modelsOf(before, after).flatMap((facts) => {
    const routes = [...before.router.all(facts.id), ...after.router.all(facts.id)]
    const conditions = new Map<string, WhenConfig>([['', PLAIN]])
    for (const { config } of routes) {
      if (config.when !== null) conditions.set(JSON.stringify(config.when), config.when)
    }
    return [...conditions.values()].map((when) => headFor(facts, when))
  })
}

/** The models of the catalogues and of routes. */
function modelsOf(before: ComparedConfig, after: ComparedConfig): ModelFacts[] {
  const models = new Map<string, ModelFacts>()
  for (const { config, catalogue, router } of [before, after]) {
    const named = config.routes.flatMap(({ match }) => ('model' in match ? [match.model] : []))
    for (const id of [...catalogue.models.map((facts) => facts.id), ...named]) {
      if (router.all(id).length > 0 && !models.has(id)) {
        models.set(id, catalogue.find(id) ?? { id, family: '', createdAtSeconds: 0 })
      }
    }
  }
  return [...models].map(([id, facts]) => ({ ...facts, id }))
}

function headFor({ id, embedding }: ModelFacts, when: WhenConfig): RequestHead {
  const isEmbedding = embedding === true
  const images = when.images === true ? ['image base64 image/png'] : []
  const sketch: RequestShape = {
    turns: [['user', 'text', ...images]],
    ends: ['user', 'user'],
    tools: when.tools === true ? ['function parameters'] : [],
    settings: {},
    rest: {},
    native: [],
  }
  return {
    atMs: 0,
    keyId: '',
    accountId: '',
    labels: when.labels,
    format: isEmbedding ? 'embeddings' : 'chat',
    dialect: 'openai-chat',
    wire: isEmbedding ? 'openai-embeddings' : 'openai-chat',
    model: id,
    stream: false,
    bodyBytes: 0,
    promptTokens: when.minPromptTokens ?? 0,
    usage: { input: SAMPLE_TOKENS, output: isEmbedding ? 0 : SAMPLE_TOKENS },
    tier: null,
    outcome: 'ok',
    sketch,
  }
}
