/**
 * Goal: an upstream's error has the right kind and retry advice.
 * Method: the codes of failed responses, and the bodies of refused requests.
 */
import t from 'tap'
import { upstreamCodec, decodeWhole } from '../driver.js'

void t.test('the code of a failed response determines the kind', (t) => {
  const rows: [code: string | null, kind: string, retryable?: false][] = [
    ['server_error', 'upstream_failed'],
    ['rate_limit_exceeded', 'upstream_busy'],
    ['insufficient_quota', 'upstream_busy', false],
    ['invalid_prompt', 'upstream_rejected'],
    ['invalid_image_url', 'upstream_rejected'],
    ['invalid_base64_image', 'upstream_rejected'],
    ['image_too_large', 'upstream_rejected'],
    ['image_content_policy_violation', 'upstream_rejected'],
    ['empty_image_file', 'upstream_rejected'],
    ['failed_to_download_image', 'upstream_rejected'],
    ['unsupported_image_media_type', 'upstream_rejected'],
    ['bio_policy', 'upstream_rejected'],
    ['vector_store_timeout', 'upstream_timeout'],
    ['model_not_found', 'unknown_model'],
    ['something_new', 'upstream_failed'],
    [null, 'upstream_failed'],
  ]
  for (const [code, kind, retryable] of rows) {
    const { error } = decodeWhole({
      status: 'failed',
      error: { code, message: 'Why.' },
      output: [],
    })
    t.match(error, { kind, message: 'Why.', upstreamCode: code ?? 'failed' }, String(code))
    t.equal(error?.retryable, retryable, String(code))
  }
  t.match(decodeWhole({ status: 'cancelled', output: [] }).error, { upstreamCode: 'cancelled' })
  t.end()
})

void t.test('the body of a refused request determines the kind', (t) => {
  const body = (error: object): string => JSON.stringify({ error })
  const model = { message: 'No such model.', type: 'invalid_request_error', param: 'model' }
  t.match(upstreamCodec.decodeError(400, {}, body({ ...model, code: 'model_not_found' })), {
    kind: 'unknown_model',
  })
  t.match(upstreamCodec.decodeError(400, {}, body({ message: 'No.', param: 'input[1].content' })), {
    kind: 'upstream_rejected',
    param: 'input[1].content',
  })
  t.match(upstreamCodec.decodeError(429, { 'retry-after': '7' }, body({ message: 'Later.' })), {
    kind: 'upstream_busy',
    retryAfterSeconds: 7,
  })
  t.match(upstreamCodec.decodeError(500, {}, '<html>'), { kind: 'upstream_failed' })
  t.end()
})
