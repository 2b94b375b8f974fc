/**
 * Goal: with `native_sharing: account`, an account lists, reads, uses and deletes only objects that its own
 * keys created at a shared provider account; other ids and unknown ones are 404 before the provider receives
 * the request. Method: two accounts, a provider with collections of every vendor, both stores.
 */
import t from 'tap'
import { openAccounts, STORES, type Accounts } from './accounts.js'

t.setTimeout(120_000)

const OPENAI = '/native/openai'
const GOOGLE = '/native/google'

async function idOf(reply: Response): Promise<string> {
  const text = await reply.text()
  const { id, name, file } = JSON.parse(text) as { id?: string; name?: string; file?: object }
  const found = id ?? name ?? (file as { name: string } | undefined)?.name
  if (found === undefined) throw new Error(`no object: ${reply.status} ${text}`)
  return found
}

/** The provider's requests during `step`. */
async function asked({ provider }: Accounts, step: () => Promise<unknown>): Promise<string[]> {
  const before = provider.seen.length
  await step()
  return provider.seen.slice(before).map(({ method, url }) => `${method} ${url}`)
}

function form(text: string, fields: Record<string, string> = {}): FormData {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.append(name, value)
  data.append('file', new Blob([text]), 'a.jsonl')
  return data
}

for (const store of STORES) {
  void t.test(`${store}: objects of another account do not exist`, async (t) => {
    const scene = await openAccounts(t, store)
    const { a, b } = scene
    for (const path of [
      `${OPENAI}/v1/vector_stores`,
      `${OPENAI}/v1/batches`,
      '/native/anthropic/v1/messages/batches',
      `${GOOGLE}/v1beta/cachedContents`,
      `${GOOGLE}/v1beta/files`,
    ]) {
      const own = await idOf(await a(path, { json: { note: 1 } }))
      const other = await idOf(await b(path, { json: { note: 2 } }))
      const at = (id: string): string => `${path}/${id.split('/').at(-1) ?? ''}`
      const list = await (await b(path)).text()
      t.match(list, `"${other}"`, `${path} lists the account's own`)
      t.notMatch(list, `"${own}"`, `${path} lists no others`)
      const both = JSON.parse(list) as Record<string, unknown>
      const items = Object.values(both).find(Array.isArray) as unknown[]
      t.equal(items.length, 1, path)
      const requests = await asked(scene, async () => {
        for (const method of ['GET', 'DELETE', 'POST']) {
          const refused = await b(at(own), { method, ...(method === 'POST' ? { body: '{}' } : {}) })
          t.equal(refused.status, 404, `${method} ${at(own)}`)
          t.match(await refused.json(), { error: { kind: 'unknown_object' } })
        }
        t.equal((await b(`${at(own)}/content`)).status, 404)
        t.equal((await b(at('unknown-1'))).status, 404, 'an unknown id')
      })
      t.strictSame(requests, [], 'no request reaches the provider')
      t.equal((await a(at(own))).status, 200, 'the owner reads it')
      t.equal((await a(at(own), { method: 'DELETE' })).status, 200, 'and deletes it')
      t.equal((await a(at(own))).status, 404, 'then it is unknown')
    }
    t.match(await (await b(`${OPENAI}/v1/models`)).json(), { object: 'list' }, 'models are public')
    t.equal((await b(`${OPENAI}/v1/shared/files/file-public`)).status, 404, 'opened by its rule')
  })

  void t.test(`${store}: files, and the requests that name them`, async (t) => {
    const scene = await openAccounts(t, store)
    const { a, b, provider } = scene
    const own = await idOf(await a(`${OPENAI}/v1/files`, { method: 'POST', body: form('hi') }))
    const more = await idOf(await a(`${OPENAI}/v1/files`, { method: 'POST', body: form('ho') }))
    const page = (await (await a(`${OPENAI}/v1/files`)).json()) as { data: { note: string }[] }
    t.strictSame(
      page.data.map(({ note }) => note),
      ['a, "b"', 'a, "b"'],
      'all of them',
    )
    t.strictSame(JSON.parse(await (await b(`${OPENAI}/v1/files`)).text()), {
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
    const bodies: [path: string, body: unknown][] = [
      ['/v1/batches', { input_file_id: own, endpoint: '/v1/responses' }],
      ['/v1/vector_stores', { file_ids: ['file-x', own] }],
      ['/v1/responses', { input: [{ content: [{ type: 'input_file', file_id: own }] }] }],
      ['/v1/responses', { tools: [{ type: 'file_search', vector_store_ids: [own] }] }],
      ['/v1/responses', { prompt: { id: own } }],
      ['/v1/responses', { previous_response_id: own }],
      ['/v1/responses', { tools: [{ type: 'code_interpreter', container: own }] }],
      ['/v1/responses', { conversation: { id: own } }],
    ]
    const requests = await asked(scene, async () => {
      for (const [path, json] of bodies) {
        t.equal((await b(OPENAI + path, { json })).status, 404, JSON.stringify(json))
      }
      const escaped = `{"input_\\u0066ile_id":"${own}"}`
      const raw = { method: 'POST', headers: { 'content-type': 'text/plain' } }
      t.equal((await b(`${OPENAI}/v1/batches`, { ...raw, body: escaped })).status, 404)
      const twice = `{"input_file_id":"${own}","input_file_id":"x"}`
      t.equal((await b(`${OPENAI}/v1/batches`, { ...raw, body: twice })).status, 404)
      const wide = Buffer.from(`{"input_file_id":"${own}"}`, 'utf16le')
      t.equal((await b(`${OPENAI}/v1/batches`, { ...raw, body: wide })).status, 400, 'UTF-16')
      const loose = `{'input_file_id':'${own}'}`
      t.equal((await b(`${OPENAI}/v1/batches`, { ...raw, body: loose })).status, 400)
      const zipped = { 'content-encoding': 'gzip', 'content-type': 'application/json' }
      const coded = { method: 'POST', headers: zipped, body: '\x1f\x8b' }
      t.equal((await b(`${OPENAI}/v1/batches`, coded)).status, 415)
      const fields = { method: 'POST', body: form('x', { file_id: own }) }
      t.equal((await b(`${OPENAI}/v1/files`, fields)).status, 400, 'a field of a form')
      t.equal((await b(`${OPENAI}/v1/vector_stores?file_id=${own}`)).status, 404, 'a query')
    })
    t.strictSame(requests, [])
    const line = JSON.stringify({ body: { input: [{ file_id: own }] } })
    const lines = { method: 'POST', body: form(`${line}\n${line}\n`, { purpose: 'batch' }) }
    t.equal((await b(`${OPENAI}/v1/files`, lines)).status, 404, 'the lines of a batch')
    t.equal((await a(`${OPENAI}/v1/files`, lines)).status, 200)
    const unread = await a(`${OPENAI}/v1/batches`, { json: { input_file_id: more } })
    t.equal(unread.status, 400, 'a file whose requests were not read')
    const parts = (offset: string): Promise<Response> => {
      const headers = {
        'x-goog-upload-offset': offset,
        'x-goog-upload-command': 'upload, finalize',
      }
      return a(`${GOOGLE}/upload/v1beta/files`, {
        method: 'POST',
        body: '{"request":{"contents":[{"parts":[{"text":"x"}]}]}}\n',
        headers,
      })
    }
    const create = '/v1beta/models/gemini-2.5-flash:batchGenerateContent'
    provider.replies.set(`POST ${create}`, { name: 'batches/b1' })
    for (const [offset, status] of [
      ['0', 200],
      ['8388608', 400],
    ] as const) {
      const file_name = await idOf(await parts(offset))
      const json = { batch: { input_config: { file_name } } }
      const made = await a(`${GOOGLE}/v1beta/models/gemini-2.5-flash:batchGenerateContent`, {
        json,
      })
      t.equal(made.status, status, `the file from ${offset}`)
    }
    const pair = { json: { file_ids: [own, more] } }
    t.equal((await a(`${OPENAI}/v1/vector_stores`, pair)).status, 200, 'of the owner')
    t.equal(provider.seen.at(-1)?.body, JSON.stringify(pair.json), 'the body passes unchanged')
    const call = { messages: [{ content: [{ type: 'tool_use', input: { file_id: own } }] }] }
    t.equal((await b(`${OPENAI}/v1/images/edits`, { json: call })).status, 404, 'from the provider')
    t.match(provider.seen.at(-1)?.url, 'images', 'data of a tool names no object')
  })

  void t.test(`${store}: objects that the provider makes for the account`, async (t) => {
    const { a, b, gateway, provider } = await openAccounts(t, store)
    const batch = await idOf(await a(`${OPENAI}/v1/batches`, { json: { metadata: {} } }))
    const done = { id: batch, object: 'batch', status: 'completed', output_file_id: 'file-out' }
    provider.replies.set(`GET /v1/batches/${batch}`, done)
    provider.replies.set('GET /v1/files/file-out/content', '{"custom_id":"1"}\n')
    t.equal((await a(`${OPENAI}/v1/files/file-out/content`)).status, 404, 'not known yet')
    t.equal((await a(`${OPENAI}/v1/batches/${batch}`)).status, 200)
    t.equal((await a(`${OPENAI}/v1/files/file-out/content`)).status, 200)
    t.equal((await b(`${OPENAI}/v1/files/file-out/content`)).status, 404)
    const start = await a(`${GOOGLE}/upload/v1beta/files`, {
      json: { file: { displayName: 'a' } },
      headers: { 'x-goog-upload-command': 'start', 'x-goog-upload-protocol': 'resumable' },
    })
    const url = new URL(start.headers.get('x-goog-upload-url') ?? '')
    t.equal(url.origin, gateway.origin, 'the bytes go through the gateway')
    const bytes = { method: 'POST', body: 'plain', headers: { 'x-goog-upload-offset': '0' } }
    t.equal((await b(url.pathname + url.search, bytes)).status, 404, 'the upload of another')
    const file = await idOf(await a(url.pathname + url.search, bytes))
    t.equal(provider.seen.at(-1)?.url, '/upload/v1beta/files?upload_id=up-1&upload_protocol=resumable')
    t.equal((await a(`${GOOGLE}/v1beta/${file}`)).status, 200, 'an upload')
    t.equal((await b(`${GOOGLE}/v1beta/${file}`)).status, 404)
  })

  void t.test(`${store}: translated requests`, async (t) => {
    const scene = await openAccounts(t, store)
    const { a, b, provider } = scene
    const file = await idOf(await a(`${OPENAI}/v1/files`, { method: 'POST', body: form('hi') }))
    const cache = await idOf(await a(`${GOOGLE}/v1beta/cachedContents`, { json: {} }))
    const user = (content: unknown) => [{ role: 'user', content }]
    const requests: [path: string, json: object][] = [
      [
        '/v1/chat/completions',
        { model: 'gpt-4o', messages: user([{ type: 'file', file: { file_id: file } }]) },
      ],
      ['/v1/responses', { model: 'gpt-4.1', input: user([{ type: 'input_file', file_id: file }]) }],
      ['/v1/responses', { model: 'gpt-4.1', input: 'hi', prompt: { id: 'pmpt_1' } }],
      [
        '/v1/chat/completions',
        {
          model: 'gpt-4o',
          messages: [...user('x'), { role: 'assistant', audio: { id: 'audio_1' } }, ...user('y')],
        },
      ],
      [
        '/v1/responses',
        {
          model: 'gpt-4.1',
          input: 'hi',
          tools: [{ type: 'file_search', vector_store_ids: ['vs_of_another'] }],
        },
      ],
      [
        '/v1/messages',
        {
          model: 'claude-sonnet-4-5',
          max_tokens: 9,
          messages: user([{ type: 'document', source: { type: 'file', file_id: 'file_1' } }]),
        },
      ],
      [
        '/v1/messages',
        {
          model: 'claude-sonnet-4-5',
          max_tokens: 9,
          messages: user('x'),
          container: 'container_1',
        },
      ],
      [
        '/v1beta/models/gemini-2.5-flash:generateContent',
        { contents: [{ role: 'user', parts: [{ text: 'x' }] }], cachedContent: cache },
      ],
      [
        '/v1beta/models/gemini-2.5-flash:generateContent',
        {
          contents: [
            {
              role: 'user',
              parts: [{ fileData: { fileUri: `${provider.origin}.googleapis.com/v1beta/files/g9` } }],
            },
          ],
        },
      ],
    ]
    const sent = await asked(scene, async () => {
      for (const [path, json] of requests) {
        const reply = await b(path, { json })
        t.equal(reply.status, 404, JSON.stringify(json))
        t.match(await reply.text(), 'unknown_object')
      }
    })
    t.strictSame(sent, [], 'no request reaches the provider')
    const spellings = { contents: [{ parts: [{ file_data: { fileUri: 'files/g8' } }] }] }
    t.equal((await b('/v1beta/models/gemini-2.5-flash:countTokens', { json: spellings })).status, 404)
    const [[path, json] = ['', {}]] = requests
    await a(path, { json })
    t.match(provider.seen.at(-1), { url: '/v1/chat/completions', body: file }, 'of the owner')
    const tool = { name: 'f', parameters: { type: 'object', properties: { file_id: {} } } }
    const plain = {
      model: 'gpt-4o',
      messages: user('x'),
      tools: [{ type: 'function', function: tool }],
    }
    t.equal((await asked(scene, () => b(path, { json: plain }))).length, 1)
  })

  void t.test(`${store}: the sound of earlier replies`, async (t) => {
    const { a, b, gateway, provider } = await openAccounts(t, store)
    const plain = `  plain: { dialect: openai-chat, base_url: "${provider.origin}/v1", api_key: k }\n`
    gateway.add(plain, '  - { model: plain, upstream: plain }\n')
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    const audio = { id: 'audio_own', expires_at: 1, data: 'UklGRg==', transcript: 'x' }
    const message = { role: 'assistant', content: null, audio }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    provider.replies.set('POST /v1/chat/completions', { id: 'c', object: 'chat.completion', choices, usage })
    const user = { role: 'user', content: 'x' }
    const turns = (id: string): object => ({
      model: 'plain',
      messages: [user, { role: 'assistant', audio: { id } }, user],
    })
    const asked = { ...{ model: 'plain', messages: [user] }, audio: { voice: 'alloy', format: 'wav' } }
    t.equal((await a('/v1/chat/completions', { json: asked })).status, 200)
    t.equal((await a('/v1/chat/completions', { json: turns('audio_own') })).status, 200, 'its own')
    t.equal((await b('/v1/chat/completions', { json: turns('audio_own') })).status, 404, 'of another')
    t.equal((await b('/v1/chat/completions', { json: turns('audio_of_no_reply') })).status, 200)
    t.match(provider.seen.at(-1)?.body, 'audio_of_no_reply', 'for the upstream to judge')
    const strict = { ...turns('audio_of_no_reply'), model: 'gpt-4o' }
    t.equal((await b('/v1/chat/completions', { json: strict })).status, 404, "OpenAI's API")
    const other = { ...turns('audio_of_no_reply'), model: 'gpt-4.1' }
    t.not((await b('/v1/chat/completions', { json: other })).status, 404, 'Responses gets no sound')
  })

  void t.test(`${store}: ids of a client's own in members without objects`, async (t) => {
    const scene = await openAccounts(t, store)
    const own = {
      ...{ client_metadata: { thread_id: '01a2', turn: [{ file_id: 'f' }] }, conversation_id: 'c-1' },
      ...{ thread_id: 't-1', file_id: 'file_1', session: { container: 'container_1' } },
    }
    const message = { role: 'user', content: 'x', ...own }
    const max_tokens = 9
    const input = [message]
    const gemini = { contents: [{ role: 'user', parts: [{ text: 'x', ...own }] }], ...own }
    const requests: [path: string, json: object][] = [
      ['/v1/chat/completions', { model: 'gpt-4o', messages: [message], ...own }],
      ...['gpt-4.1', 'gpt-4o', 'claude-sonnet-4-5', 'gemini-2.5-flash'].map((model): [string, object] => [
        '/v1/responses',
        { model, input: 'x', ...own },
      ]),
      ['/v1/responses', { model: 'gpt-4.1', input, ...own }],
      ['/v1/messages', { model: 'claude-sonnet-4-5', max_tokens, messages: [message], ...own }],
      ['/v1/messages', { model: 'gpt-4o', max_tokens, messages: [{ role: 'user', content: 'x' }], ...own }],
      ['/v1beta/models/gemini-2.5-flash:generateContent', gemini],
    ]
    for (const [path, json] of requests) {
      const sent = await asked(scene, async () => {
        const reply = await scene.b(path, { json })
        t.notMatch(await reply.text(), 'unknown_object', `${path} ${JSON.stringify(json)}`)
      })
      t.equal(sent.length, 1, `${path} ${JSON.stringify(json)}`)
    }
  })

  void t.test(`${store}: containers and responses of translated requests`, async (t) => {
    const { a, b, provider } = await openAccounts(t, store)
    const usage = { input_tokens: 1, output_tokens: 1 }
    const message = {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', usage },
      ...{ stop_reason: 'end_turn', stop_sequence: null, container: { id: 'container_9' } },
      content: [
        {
          type: 'tool_use',
          id: 't',
          name: 'f',
          input: { file_id: 'file_x', container: { id: 'x' } },
        },
      ],
    }
    provider.replies.set('POST /v1/messages', message)
    const ask = (container: string | undefined): object => ({
      ...{ model: 'claude-sonnet-4-5', max_tokens: 9, container },
      messages: [{ role: 'user', content: 'x' }],
      tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
    })
    t.equal((await a('/v1/messages', { json: ask(undefined) })).status, 200)
    t.equal((await a('/v1/messages', { json: ask('container_9') })).status, 200, 'its own')
    t.equal((await b('/v1/messages', { json: ask('container_9') })).status, 404)
    t.equal((await a('/native/anthropic/v1/files/file_x')).status, 404, 'written by the model')
    const item = { type: 'code_interpreter_call', id: 'ci', status: 'completed', code: '1' }
    const response = {
      ...{ id: 'resp_up', object: 'response', status: 'completed', model: 'gpt-4.1', usage },
      ...{ created_at: 1, output: [{ ...item, container_id: 'cntr_9', outputs: [] }] },
    }
    const event = (type: string): string => `event: ${type}\ndata: ${JSON.stringify({ type, response })}\n\n`
    provider.replies.set('POST /v1/responses', event('response.completed'))
    const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }]
    const json = { model: 'gpt-4.1', input: 'x', stream: true, tools }
    await (await a('/v1/responses', { json })).text()
    t.equal((await b('/native/responses/v1/responses/resp_up')).status, 404)
    provider.replies.set('GET /v1/responses/resp_up', response)
    t.equal((await a('/native/responses/v1/responses/resp_up')).status, 200, 'the account reads it')
    provider.replies.set('GET /v1/containers/cntr_9/files', { data: [] })
    t.equal((await a('/native/responses/v1/containers/cntr_9/files')).status, 200)
    t.equal((await b('/native/responses/v1/containers/cntr_9/files')).status, 404)
  })

  void t.test(`${store}: native_sharing: shared lets the provider decide`, async (t) => {
    const { a, b, provider } = await openAccounts(t, store, { options: 'native_sharing: shared' })
    const file = await idOf(await a(`${OPENAI}/v1/files`, { method: 'POST', body: form('hi') }))
    t.match(await (await b(`${OPENAI}/v1/files`)).text(), file)
    t.equal((await b(`${OPENAI}/v1/files/${file}`)).status, 200)
    t.equal((await b(`${OPENAI}/v1/batches`, { json: { input_file_id: file } })).status, 200)
    const json = {
      model: 'gpt-4o',
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file } }] }],
    }
    await b('/v1/chat/completions', { json })
    t.equal(provider.seen.at(-1)?.url, '/v1/chat/completions')
  })
}

void t.test('a list that cannot be read is refused', async (t) => {
  const { a, provider } = await openAccounts(t, 'sqlite')
  for (const list of ['data: {}', '{"data":[{"id":"file-1"}]}']) {
    provider.replies.set('GET /v1/files', list)
    t.equal((await a(`${OPENAI}/v1/files`)).status, 502, list)
  }
})

void t.test('only listed headers pass, in both directions', async (t) => {
  const { a, provider } = await openAccounts(t, 'sqlite')
  const reply = await a(`${OPENAI}/v1/files`, {
    headers: {
      'openai-organization': 'org-x',
      'openai-project': 'proj-x',
      'x-http-method-override': 'DELETE',
      'x-original-url': '/v1/files/file-1',
      'x-amz-target': 'x',
      'ocp-apim-subscription-key': 'x',
      'x-goog-user-project': 'x',
      'x-mine': '1',
      'openai-beta': 'assistants=v2',
      'anthropic-beta': 'files-api-2025-04-14',
      'idempotency-key': 'i1',
      'x-stainless-lang': 'js',
      range: 'bytes=0-1',
    },
  })
  const seen = provider.seen[0]?.headers ?? {}
  const { connection, host, ...kept } = seen
  t.ok(connection !== undefined && host !== undefined)
  t.strictSame(Object.keys(kept).sort(), [
    'accept',
    'accept-encoding',
    'accept-language',
    'anthropic-beta',
    'authorization',
    'idempotency-key',
    'openai-beta',
    'range',
    'user-agent',
    'x-stainless-lang',
  ])
  t.strictSame(
    [...reply.headers.keys()].filter((name) => /org|ratelimit/.test(name)),
    [],
  )
})
