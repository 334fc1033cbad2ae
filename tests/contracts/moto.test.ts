/** The provider on moto, for the shapes of the API. moto buys again for a token and always has what is asked for. */
import { ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import { machineOfMoto, startMoto } from '../cloud/moto.ts';
import { useTestCredentials } from '../cloud/use.ts';
import { temporaryFolders } from '../temporary-folders.ts';
import { providerContract } from './provider.ts';

useTestCredentials();
const folder = temporaryFolders('petrel-moto-');

providerContract('moto', async () => {
  const server = await startMoto(await folder());
  const provider = ec2Provider({ endpoint: server.endpoint });
  return {
    provider,
    machine: await machineOfMoto(server, 'us-east-1', ['us-east-1a', 'us-east-1b']),
    type: 'c7i.2xlarge',
    foreignType: 'c7g.2xlarge',
    async close() {
      provider.close();
      await server.stop();
    },
  };
});
