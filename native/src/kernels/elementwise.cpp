// Placeholder of the skeleton.
#include "../vec.h"
