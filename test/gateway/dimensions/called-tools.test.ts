/**
 * Goal: a run has the names of the tools that the model called and how often, in every format of a client,
 * passed on or translated, whole or streamed; only requests of runs do.
 * Method: one request of each pair of formats to a gateway with the admin API over an emulator.
 */
import t, { type Test } from 'tap'
import type { JsonValue } from '../../../src/base/json.js'
import { onBothStores, startAdmin, type AdminStage } from '../../control/admin/admin-stage.js'
import { rowsOf } from '../../helpers/ledger.js'

const MORE = 'dimensions: [{ name: run, from: [header:x-run-id] }]'
const MODELS = ['gpt-5.4-mini', 'gpt-4.1', 'claude-sonnet-4-6', 'gemini-2.5-flash']
const TOOL = 'look_up'
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const PROMPT = `Call the tool ${TOOL} for Paris.`

interface Form {
  readonly path: (model: string, stream: boolean) => string
  readonly body: (model: string, stream: boolean) => Record<string, JsonValue>
}

const FORMS: Record<string, Form> = {
  chat: {
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({
      ...{ model, stream, messages: [{ role: 'user', content: PROMPT }], tool_choice: 'required' },
      tools: [{ type: 'function', function: { name: TOOL, parameters: SCHEMA } }],
    }),
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, stream) => ({
      ...{ model, stream, input: PROMPT, tool_choice: 'required' },
      tools: [{ type: 'function', name: TOOL, parameters: SCHEMA, strict: false }],
    }),
  },
  messages: {
    path: () => '/v1/messages',
    body: (model, stream) => ({
      ...{ model, stream, max_tokens: 500, messages: [{ role: 'user', content: PROMPT }] },
      ...{ tools: [{ name: TOOL, input_schema: SCHEMA }], tool_choice: { type: 'any' } },
    }),
  },
  gemini: {
    path: (model, stream) =>
      `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({
      contents: [{ role: 'user', parts: [{ text: PROMPT }] }],
      tools: [{ functionDeclarations: [{ name: TOOL, parameters: SCHEMA }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    }),
  },
}

interface Asked {
  readonly form: Form
  readonly model: string
  readonly stream: boolean
  readonly run: string | null
}

async function ask(t: Test, { gateway }: AdminStage, { form, model, stream, run }: Asked): Promise<void> {
  const reply = await fetch(gateway.origin + form.path(model, stream), {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', authorization: `Bearer ${gateway.secret}` },
      ...(run !== null && { 'x-run-id': run }),
    },
    body: JSON.stringify(form.body(model, stream)),
  })
  const text = await reply.text()
  t.equal(reply.status, 200, text.slice(0, 300))
  t.match(text, TOOL)
}

async function toolsOf(stage: AdminStage, run: string): Promise<unknown> {
  await rowsOf(stage.gateway)
  const page = await stage.store.listAccounts({ order: 'newest_first', after: null, limit: 10 })
  const path = `/runs/${encodeURIComponent(run)}?account=${page.items[0]?.name ?? ''}`
  const { text, json } = await stage.ask('GET', path)
  return json['tools'] ?? text
}

onBothStores(t, 'tools of a run, by pair of formats', async (t, settings) => {
  const stage = await startAdmin(t, { ...settings, more: MORE })
  for (const [name, form] of Object.entries(FORMS)) {
    for (const model of MODELS) {
      for (const stream of [false, true]) {
        const run = `${name} ${model} ${stream ? 'streamed' : 'whole'}`
        await ask(t, stage, { form, model, stream, run })
        t.same(await toolsOf(stage, run), [{ name: TOOL, calls: 1 }], run)
      }
    }
  }
  const [form] = Object.values(FORMS)
  const [model = ''] = MODELS
  if (form === undefined) return
  await ask(t, stage, { form, model, stream: true, run: 'chat gpt-5.4-mini whole' })
  t.same(await toolsOf(stage, 'chat gpt-5.4-mini whole'), [{ name: TOOL, calls: 2 }], 'they add up')
  await ask(t, stage, { form, model, stream: true, run: null })
})
