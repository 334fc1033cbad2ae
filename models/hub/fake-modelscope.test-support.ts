/** ModelScope on 127.0.0.1 for tests: the two addresses that petrel asks, as ModelScope's own library shows them. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FakeHub, json } from './fake-hub.test-support.ts';

export class FakeModelScope extends FakeHub {
  /** Branches, tags and commits that it has. */
  revisions = ['master'];
  /** What it says instead of listing files. */
  listing: unknown;
  /** Files are sent from the beginning, whatever part was asked for. */
  knowsRanges = true;

  protected override answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '', this.url);
    const revision = url.searchParams.get('Revision') ?? '';
    const file = url.searchParams.get('FilePath');
    this.log.push(`${url.pathname} ${revision}${file === null ? '' : ` ${file}`}`);
    if (this.status !== undefined) return json(response, this.status, { Code: this.status, Message: 'injected' });
    const { authorization, cookie } = request.headers;
    if (
      this.token !== undefined &&
      (authorization !== `Bearer ${this.token}` || cookie !== `m_session_id=${this.token}`)
    )
      return json(response, 403, { Code: 403, Message: 'no access' });
    const isKnown = url.pathname.startsWith('/api/v1/models/org/tiny/repo') && this.revisions.includes(revision);
    if (!isKnown) return json(response, 404, { Code: 10010205001, Message: 'record not found', Success: false });
    if (url.pathname.endsWith('/repo/files')) return json(response, 200, this.listing ?? this.#files());
    if (file === null || !this.files.has(file)) return json(response, 404, { Code: 404, Message: 'no file' });
    if (!this.knowsRanges) delete request.headers.range;
    this.sendOrRedirect(file, request, response);
  }

  #files(): unknown {
    const files = [...this.files].map(([path, { bytes }]) => ({
      Type: 'blob',
      Name: path,
      Path: path,
      Size: bytes.length,
      Sha256: createHash('sha256').update(bytes).digest('hex'),
      Revision: 'f'.repeat(40),
    }));
    const below = [
      { Type: 'tree', Name: 'onnx', Path: 'onnx', Size: 0, Sha256: '' },
      { Type: 'blob', Name: 'config.json', Path: 'onnx/config.json', Size: 1, Sha256: '' },
    ];
    return {
      Code: 200,
      Success: true,
      Message: '',
      Data: { Files: [...files, ...below], LatestCommitter: { Id: '' } },
    };
  }
}
