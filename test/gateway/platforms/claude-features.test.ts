/**
 * Goal: Claude on a cloud gets the beta features and fields that the cloud takes; the rest is left out and
 * named, because the cloud would refuse the whole request.
 * Method: requests as coding agents send them, through upstreams of each platform, to a recording server.
 */
import t, { type Test } from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { AWS_AUTH, startCloud } from './capture.js'

const PLATFORMS = {
  bedrock: `platform: bedrock, dialect: anthropic, region: eu-west-1, auth: ${AWS_AUTH}`,
  vertex: 'platform: vertex, dialect: anthropic, project: acme-prod, location: us-east5, api_key: k',
  azure: 'platform: azure, dialect: anthropic, api_key: k',
}

const EPHEMERAL = { type: 'ephemeral', scope: 'global' }

const BODY = {
  model: 'cc-x',
  max_tokens: 100,
  system: [{ type: 'text', text: 'Be brief.', cache_control: EPHEMERAL }],
  messages: [
    { role: 'user', content: 'Run it.' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'run', input: {} }] },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [
            { type: 'text', text: 'done', cache_control: EPHEMERAL },
            { type: 'tool_reference', tool_name: 'run', cache_control: EPHEMERAL },
          ],
        },
      ],
    },
  ],
  tools: [
    {
      name: 'run',
      input_schema: { type: 'object', properties: { scope: { type: 'string' } } },
      defer_loading: true,
      eager_input_streaming: true,
      cache_control: EPHEMERAL,
    },
  ],
  context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
  speed: 'standard',
}

interface Outcome {
  readonly body: JsonObject
  readonly betas: readonly string[]
  readonly lost: readonly string[]
}

async function sentTo(
  t: Test,
  settings: string,
  { betas, path = '', more = {} }: { readonly betas: string; readonly path?: string; readonly more?: object },
): Promise<Outcome> {
  const { cloud, gateway } = await startCloud(t, 'cc-', settings)
  const response = await fetch(`${gateway.origin}/v1/messages${path}`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json', 'anthropic-beta': betas },
    body: JSON.stringify({ ...BODY, ...more }),
  })
  await response.text()
  const last = cloud.requests.at(-1)
  const body = objectOf(JSON.parse(last?.body.toString() ?? '{}'))
  const inBody = Array.isArray(body['anthropic_beta']) ? body['anthropic_beta'].map(String) : []
  const inHeader = String(last?.headers['anthropic-beta'] ?? '').split(',')
  return {
    body,
    // Bedrock gets them in both places, as from Anthropic's SDK.
    betas: [...new Set([...inBody, ...inHeader])].filter((beta) => beta !== ''),
    lost: (response.headers.get('x-sluice-lost') ?? '').split(/,\s*/),
  }
}

const AGENT = 'claude-code-20250219,oauth-2025-04-20,prompt-caching-scope-2026-01-05'

for (const name of ['bedrock', 'vertex'] as const) {
  void t.test(`${name}: foreign features and their fields stay out`, async (t) => {
    const betas = `${AGENT},context-1m-2025-08-07,advanced-tool-use-2025-11-20`
    const { body, betas: sent, lost } = await sentTo(t, PLATFORMS[name], { betas })
    t.same(sent, ['context-1m-2025-08-07'])
    const text = JSON.stringify(body)
    for (const field of ['"global"', 'defer_loading', 'eager_input', 'context_management', 'speed']) {
      t.notMatch(text, field)
    }
    t.notMatch(text, 'tool_reference')
    t.match(text, String.raw`"Tool found: run\n","cache_control":{"type":"ephemeral"}`)
    t.match(text, '"scope":{"type":"string"}', 'a property of that name stays')
    t.match(text, '"cache_control":{"type":"ephemeral"}')
    for (const path of [
      'anthropic-beta.claude-code-20250219',
      'anthropic-beta.advanced-tool-use-2025-11-20',
      'cache_control.scope',
      'tools.defer_loading',
      'messages.tool_reference',
      'tools.eager_input_streaming',
      'context_management',
      'speed',
    ]) {
      t.ok(lost.includes(path), path)
    }
  })

  void t.test(`${name}: a field stays with its feature`, async (t) => {
    const betas = 'context-management-2025-06-27,tool-search-tool-2025-10-19'
    const { body, betas: sent, lost } = await sentTo(t, PLATFORMS[name], { betas })
    t.same(sent, betas.split(','))
    t.same(body['context_management'], BODY.context_management)
    t.match(JSON.stringify(body), 'defer_loading')
    t.match(JSON.stringify(body), '"tool_reference"')
    t.notOk(lost.includes('context_management'))
  })
}

void t.test('azure takes more features', async (t) => {
  const { body, betas, lost } = await sentTo(t, PLATFORMS.azure, {
    betas: `${AGENT},advanced-tool-use-2025-11-20`,
  })
  t.same(betas, ['prompt-caching-scope-2026-01-05', 'advanced-tool-use-2025-11-20'])
  const text = JSON.stringify(body)
  for (const field of ['"global"', 'defer_loading', 'eager_input', '"tool_reference"']) t.match(text, field)
  t.ok(lost.includes('context_management'))
})

void t.test('a part of an option goes with its feature', async (t) => {
  const compact = { type: 'compact_20260112' }
  const clear = { type: 'clear_tool_uses_20250919' }
  const betas = 'context-management-2025-06-27,compact-2026-01-12'
  const more = {
    output_format: { type: 'json_schema', schema: { type: 'object' } },
    context_management: { edits: [compact, clear] },
  }
  const azure = await sentTo(t, PLATFORMS.azure, { betas, more })
  t.same(azure.body['context_management'], { edits: [clear] })
  t.notOk(azure.body['output_format'])
  for (const path of ['context_management.compact_20260112', 'output_format']) {
    t.ok(azure.lost.includes(path), path)
  }
  const alone = await sentTo(t, PLATFORMS.azure, {
    betas,
    more: { context_management: { edits: [compact] } },
  })
  t.notOk('context_management' in alone.body, 'no edit is left')
  const bedrock = await sentTo(t, PLATFORMS.bedrock, { betas, more })
  t.same(bedrock.body['context_management'], more.context_management)
})

void t.test('allow_betas decides over the list', async (t) => {
  const settings = `${PLATFORMS.bedrock}, allow_betas: [prompt-caching-scope-2026-01-05]`
  const { body, betas, lost } = await sentTo(t, settings, { betas: `${AGENT},context-1m-2025-08-07` })
  t.same(betas, ['prompt-caching-scope-2026-01-05'])
  t.match(JSON.stringify(body), '"global"')
  t.ok(lost.includes('anthropic-beta.context-1m-2025-08-07'))
})

void t.test("Anthropic's own API gets all, and loses fields only with their feature", async (t) => {
  const post = async (upstreamOptions?: string): Promise<JsonObject> => {
    const gateway = await startGateway(t, upstreamOptions === undefined ? {} : { upstreamOptions })
    const response = await fetch(`${gateway.origin}/v1/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': gateway.secret,
        'content-type': 'application/json',
        'anthropic-beta': 'context-management-2025-06-27',
      },
      body: JSON.stringify({ ...BODY, model: 'claude-haiku-4-5' }),
    })
    t.equal(response.status, 200)
    return gateway.emulator.ledger.at(-1)?.body ?? {}
  }
  const all = await post()
  t.same(all['tools'], BODY.tools)
  t.same(all['context_management'], BODY.context_management)
  const none = await post('allow_betas: []')
  t.equal(none['context_management'], undefined)
  t.same(none['tools'], BODY.tools)
})

const CALL = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
const RESULTS = {
  role: 'user',
  content: ['toolu_1', 'toolu_2'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' })),
}

/** A conversation that used tools of the provider, and these tools. */
const HOSTED = {
  tools: [
    { type: 'mcp_toolset', mcp_server_name: 'm' },
    { type: 'code_execution_20250825', name: 'code_execution' },
    { type: 'memory_20250818', name: 'memory' },
    { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-8' },
  ],
  tool_choice: { type: 'auto' },
  mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'm' }],
  messages: [
    { role: 'user', content: [{ type: 'container_upload', file_id: 'file_1' }] },
    { role: 'user', content: 'Run it.' },
    {
      role: 'assistant',
      content: [
        { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'f', server_name: 'm', input: {} },
        { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [] },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'bash_code_execution', input: { command: 'ls' } },
        { type: 'bash_code_execution_tool_result', tool_use_id: 'srvtoolu_1', content: { type: 'x' } },
        { type: 'text', text: 'Done.' },
        { ...CALL, caller: { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' } },
        { ...CALL, id: 'toolu_2', caller: { type: 'direct' } },
      ],
    },
    RESULTS,
  ],
}

void t.test('tools of the provider and their blocks go with their features', async (t) => {
  const betas = 'mcp-client-2025-11-20,code-execution-2025-08-25,advisor-tool-2026-03-01'
  for (const platform of ['bedrock', 'vertex'] as const) {
    const { body, lost } = await sentTo(t, PLATFORMS[platform], { betas, more: HOSTED })
    t.match(body, { tools: [{ type: 'memory_20250818' }], tool_choice: { type: 'auto' } })
    t.same(body['messages'], [
      { role: 'user', content: 'Run it.' },
      { role: 'assistant', content: [{ type: 'text', text: 'Done.' }, CALL, { ...CALL, id: 'toolu_2' }] },
      RESULTS,
    ])
    const names = ['tools.mcp_toolset', 'tools.advisor_20260301', 'messages.bash_code_execution']
    for (const name of [...names, 'messages.caller']) t.ok(lost.includes(name), `${platform}: ${name}`)
    const only = { ...HOSTED, tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }
    const none = await sentTo(t, PLATFORMS[platform], { betas: '', more: only })
    t.match(none.body, { tools: undefined, tool_choice: undefined })
  }
  // The file of the upload is of another account.
  const own = { ...HOSTED, messages: HOSTED.messages.slice(1) }
  const kept = await sentTo(t, PLATFORMS.azure, { betas, more: own })
  t.match(kept.body, { tools: HOSTED.tools.slice(0, 3), mcp_servers: HOSTED.mcp_servers })
  t.match(JSON.stringify(kept.body), 'bash_code_execution_tool_result')
  t.match(JSON.stringify(kept.body), '"caller":{"type":"direct"}')
  t.ok(kept.lost.includes('tools.advisor_20260301'))
})

void t.test('a choice goes with the tool that it names', async (t) => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const tools = [{ name: 'run', input_schema: { type: 'object' } }, search]
  const choose = (name: string, disable = {}) => ({
    betas: '',
    more: { tools, tool_choice: { type: 'tool', name, ...disable } },
  })
  const gone = await sentTo(t, PLATFORMS.bedrock, choose('web_search', { disable_parallel_tool_use: true }))
  t.match(gone.body, { tools: [{ name: 'run' }], tool_choice: undefined })
  t.ok(gone.lost.includes('tool_choice'))
  const other = await sentTo(t, PLATFORMS.bedrock, choose('run'))
  t.same(other.body['tool_choice'], { type: 'tool', name: 'run' })
  const taken = await sentTo(t, PLATFORMS.vertex, choose('web_search'))
  t.same(taken.body['tool_choice'], { type: 'tool', name: 'web_search' }, 'the cloud has the tool')
  const only = { tools: [search], tool_choice: { type: 'any' } }
  const none = await sentTo(t, PLATFORMS.bedrock, { betas: '', more: only })
  t.match(none.body, { tools: undefined, tool_choice: undefined })
  t.ok(none.lost.includes('tool_choice'), 'a choice that forces a call is named')
})
